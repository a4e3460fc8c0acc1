"""The way for large statements gives what the usual way gives, whatever is wrong with the statement."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from payonce.core.commands import BatchCommand, Change, Control, Intend
from payonce.core.model import BatchSpec, NewItem, Request
from payonce.core.money import Money
from payonce.core.states import ItemEvent
from payonce.ledger.actors import this_actor
from payonce.ledger.connect import connect
from payonce.ledger.protocol import Ledger
from payonce.reconcile import bulk
from payonce.reconcile.report import Report, document
from payonce.service import reconciling_bulk, reconciling_compare, reconciling_ledger
from payonce.service.inspecting import find_batch
from payonce.service.reconciling import Asked, statement_of, wanted_of

ITEMS = 60
HEADER = "refund_id,type,charge,amount,currency,created,idempotency_key,reference\n"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Sixty items: most committed, some unknown, refused or planned."""
    store = connect(f"sqlite:{tmp_path_factory.mktemp('bulk') / 'payonce.db'}", create=True)
    actor = this_actor()
    items = [NewItem(f"R{n}", Money.of_minor(1000 + n, "USD"), f"ch_{n}") for n in range(1, ITEMS + 1)]
    store.seal(BatchSpec("b", "refund", "simulator", targets=True), items, seal="x", actor=actor)
    store.control("b", Control(BatchCommand.START), actor=actor)
    worker = store.join("b", actor=actor, lease_us=10**9)
    for n in range(1, ITEMS - 3):
        request = Request("POST", "/v1/refunds")
        store.write(worker, [Intend(n, ItemEvent.INTENT, 0, 0, f"key-{n}", request, 10**15, 10**15)])
        if n % 20 == 0:
            change = Change(n, ItemEvent.UNDECIDED)
        elif n % 17 == 0:
            change = Change(n, ItemEvent.REFUSE, code="no")
        else:
            change = Change(n, ItemEvent.COMMIT, reference=f"re_{n}")
        store.write(worker, [change])
    store.leave(worker)
    return store


def rows(seed: int) -> list[str]:
    """A statement with faults of every kind, drawn from a seed."""
    draw = random.Random(seed)
    made: list[str] = []
    for n in range(1, ITEMS - 3):
        amount, currency, ref, key, own = 1000 + n, "usd", f"re_{n}", f"key-{n}", f"R{n}"
        fault = draw.choice(
            ["none"] * 8 + ["gone", "amount", "currency", "ref", "twice", "again", "returned", "stranger", "near"]
        )
        row = f"{ref},refund,ch_{n},{amount},{currency},2026-01-01T00:00:{n % 60:02}.000000Z,{key},{own}"
        match fault:
            case "gone":
                continue
            case "amount":
                row = row.replace(f",{amount},", f",{amount + 7},")
            case "currency":
                row = row.replace(",usd,", ",eur,")
            case "ref":
                row = row.replace(ref + ",", f"re_x{n},", 1)
            case "twice":
                made.append(row)
            case "again":
                made.append(row.replace(ref + ",", f"re_again{n},", 1))
            case "returned":
                made.append(row.replace("refund,", "refund_failure,", 1).replace(f",{amount},", f",-{amount},"))
            case "stranger":
                made.append(f"re_s{n},refund,ch_{n},{amount},usd,2026-01-01T00:00:01.000000Z,,")
            case "near":
                made.append(f"re_n{n},refund,CH_{n},5,usd,2026-01-01T00:00:01.000000Z,,")
        made.append(row)
    draw.shuffle(made)
    return made


def both(ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict, dict]:
    """The documents of the two ways."""
    batch = find_batch(ledger, "b")
    asked = Asked("b", (path,))
    usual = statement_of(batch, asked)
    slow = Report("b", "refund", usual, reconciling_compare.compare(ledger, batch, usual), 0)
    monkeypatch.setattr(bulk, "LARGE", 0)
    found = reconciling_bulk.compare_large(ledger, batch, asked.files, wanted_of(batch, asked))
    assert found is not None, "the file is plain"
    return document(slow), document(Report("b", "refund", found[0], found[1], 0))


@pytest.mark.parametrize("seed", range(25))
def test_both_ways_say_the_same(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Classes, balances, findings with their rows and notes, proofs and what is undecided."""
    path = tmp_path / "statement.csv"
    path.write_text(HEADER + "\n".join(rows(seed)) + "\n")
    slow, fast = both(ledger, path, monkeypatch)

    def key(found: dict) -> tuple[str, ...]:
        return tuple(map(str, (found["class"], found["item"], found["reference"], found["statement_rows"])))

    for said in (slow, fast):
        said["discrepancies"].sort(key=key)
        for name in ("not_covered", "undecided", "elsewhere"):
            said[name].sort(key=str)
    assert fast == slow


@pytest.mark.parametrize(
    "text",
    ['"re_1",refund,ch_1,1001,usd,2026-01-01T00:00:01Z,"a\nb",R1\n', "re_1,refund,ch_1,1001,usd,01/02/2026,k,R1\n",
     "re_1,refund,ch_1,10.5,usd,2026-01-01T00:00:01Z,k,R1\n", "re_1,refund,ch_1,1001,usd\n"],
)  # fmt: skip
def test_an_unusual_file_takes_the_usual_way(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Line breaks in fields, other times, other amounts, cut rows: nothing is decided here."""
    path = tmp_path / "statement.csv"
    path.write_text(HEADER + text)
    monkeypatch.setattr(bulk, "LARGE", 0)
    batch = find_batch(ledger, "b")
    asked = Asked("b", (path,))
    assert reconciling_bulk.compare_large(ledger, batch, asked.files, wanted_of(batch, asked)) is None
    assert reconciling_ledger.ledger_lines(ledger, batch)
