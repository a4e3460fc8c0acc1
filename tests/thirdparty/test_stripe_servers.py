"""The real command against other people's Stripe servers: 300 refunds, killed three times, answers lost, none doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.thirdparty.refundjob import FULL, KEY, SPLIT, Books, RefundJob, client
from tests.thirdparty.relay import Relay, relayed
from tests.thirdparty.servers import localstripe, stateful_mock

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
KILLS = (60, 140, 220)


def killed_and_resumed(job: RefundJob, relay: Relay) -> None:
    """Runs the batch, kills it at each mark, runs it to its end, and once more."""
    for mark in KILLS:
        job.kill_after(relay, mark)
    code, last = job.finish()
    assert (code, last["state"]) == (0, "finished"), last
    assert last["items"]["committed"] == len(job.wanted) == FULL + 2 * SPLIT
    calls = relay.posts
    assert job.finish()[0] == 0
    assert relay.posts == calls, "a finished batch makes no call"


def check_statement(job: RefundJob) -> None:
    """The server's own list, fetched and reconciled: every item is on it once, and the sums agree."""
    code, fetched = job.command("statement", "batch.toml", "--of", "refunds", "--out", "listing.jsonl")
    assert (code, fetched["rows"]) == (0, len(job.wanted))
    code, report = job.command("reconcile", "batch.toml", "--statement", "listing.jsonl")
    assert (code, report["discrepancies"]) == (0, []), report
    assert report["classes"]["matched"] == len(job.wanted)
    assert report["balance"]["USD"]["difference"] in ("0", "0.00")
    code, asked = job.command("reconcile", "batch.toml", "--from-provider")
    assert (code, asked["discrepancies"]) == (0, []), asked


def check_secrets(job: RefundJob) -> None:
    """The marked API key is in no file that was written: ledger, statement, batch file."""
    for path in job.folder.iterdir():
        assert KEY.encode() not in path.read_bytes(), path


def check_books(job: RefundJob, url: str) -> None:
    """Every item once, over its amount, in the books of a server that knows nothing of payonce."""
    books = Books.read(url)
    assert books.doubled == []
    assert {item: found[0] for item, found in books.amounts.items()} == job.wanted


def test_a_server_that_honours_keys(tmp_path: Path) -> None:
    """stripe-stateful-mock: replays answers by key."""
    with stateful_mock() as url, relayed(url, lose_every=9) as relay:
        charge = client(url).v1.charges.create
        made = [charge({"amount": 5000, "currency": "usd", "source": "tok_visa"}).id for _ in range(FULL + SPLIT)]
        job = RefundJob(tmp_path, relay.url)
        job.write(made)
        killed_and_resumed(job, relay)
        assert relay.lost > 20, "answers were lost on the way"
        check_books(job, url)
        check_statement(job)
        check_secrets(job)


def test_a_server_that_ignores_keys(tmp_path: Path) -> None:
    """localstripe executes every call again, and over-refunds: only the look-up keeps an item from being paid twice."""
    with localstripe() as url, relayed(url, lose_every=9) as relay:
        intent = client(url).v1.payment_intents.create
        card = client(url).v1.payment_methods.create(
            {"type": "card", "card": {"number": "4242424242424242", "exp_month": 12, "exp_year": 2035, "cvc": "123"}}
        )
        asked = {"amount": 5000, "currency": "usd", "payment_method": card.id, "confirm": True}
        made = [intent(asked) for _ in range(FULL + SPLIT)]
        # Half the targets are named by their charge, half by their payment intent.
        charges = [one.latest_charge if isinstance(one.latest_charge, str) else one.latest_charge.id for one in made]
        job = RefundJob(tmp_path, relay.url)
        job.write([charges[n] if n % 2 else one.id for n, one in enumerate(made)])
        killed_and_resumed(job, relay)
        assert relay.lost > 20, "answers were lost on the way"
        check_books(job, url)
        check_statement(job)
        check_secrets(job)
