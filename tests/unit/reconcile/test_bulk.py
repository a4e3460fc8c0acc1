"""The way for large statements gives what the usual way gives, whatever is wrong with the statement."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from payonce.core.commands import BatchCommand, Change, Control, Intend
from payonce.core.events import from_iso
from payonce.core.model import BatchSpec, NewItem, Request
from payonce.core.money import Money
from payonce.core.states import ItemEvent
from payonce.ledger.actors import this_actor
from payonce.ledger.connect import connect
from payonce.ledger.protocol import Ledger
from payonce.reconcile import bulk, bulk_read
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


def both(ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> tuple[dict, dict]:
    """The documents of the two ways."""
    batch = find_batch(ledger, "b")
    asked = Asked("b", (path,), **more)
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
    same(ledger, path, monkeypatch)


def same(ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch, **asked: Any) -> dict:
    """What both ways say, which is the same."""
    slow, fast = both(ledger, path, monkeypatch, **asked)

    def key(found: dict) -> tuple[str, ...]:
        return tuple(map(str, (found["class"], found["item"], found["reference"], found["statement_rows"])))

    for said in (slow, fast):
        said["discrepancies"].sort(key=key)
        for name in ("not_covered", "undecided", "elsewhere"):
            said[name].sort(key=str)
    assert fast == slow
    return fast


STRIPE = (
    "balance_transaction_id,created_utc,reporting_category,currency,gross,fee,net,source_id,charge_id,refund_metadata[ref],"
    "refund_metadata[shop]\n"
)
PAYPAL = "Date,Time,TimeZone,Name,Type,Status,Currency,Gross,Fee,Net,Transaction ID,Reference Txn ID,Custom Number\n"
ADYEN = (
    "Company Account,Merchant Account,Psp Reference,Merchant Reference,Creation Date,TimeZone,Type,Modification Reference,"
    "Gross Currency,Gross Debit (GC),Gross Credit (GC),Modification Merchant Reference\n"
)


def _major(minor: int) -> str:
    return f"{minor // 100}.{minor % 100:02}"


def stripe_row(n: int, minor: int, ref: str, draw: random.Random) -> list[str]:
    """A refund, now and then with a charge, a failure or a fee beside it."""
    made = [
        f"txn_{n},2026-01-01 00:{n:02}:00,refund,usd,-{_major(minor)},0.00,-{_major(minor)},{ref},ch_{n},R{n},shop-{n % 3}"
    ]
    if draw.random() < 0.3:
        made.append(
            f"txn_c{n},2026-01-01 00:00:0{n % 10},charge,usd,{_major(minor)},0.30,{_major(minor - 30)},ch_{n},ch_{n},,"
        )
    if draw.random() < 0.1:
        made.append(
            f"txn_f{n},2026-01-01 01:{n:02}:00,refund_failure,usd,{_major(minor)},0.00,{_major(minor)},{ref},ch_{n},,"
        )
    if draw.random() < 0.1:
        made.append(f"txn_s{n},2026-01-01 01:{n:02}:00,fee,usd,-0.35,0.00,-0.35,{ref},ch_{n},,")
    return made


def paypal_row(n: int, minor: int, ref: str, draw: random.Random) -> list[str]:
    """A refund; pending, or with conversions and a fee that point at it, now and then."""
    when = f"01/{13 + n % 15}/2026,00:{n:02}:00,PST"
    state = "Pending" if draw.random() < 0.1 else "Completed"
    made = [f"{when},,Payment Refund,{state},USD,-{_major(minor)},0.00,-{_major(minor)},{ref},ch_{n},R{n}"]
    if draw.random() < 0.2:
        made.append(f"{when},,General Currency Conversion,Completed,EUR,-9.00,0.00,-9.00,cc_{n},{ref},")
        made.append(f"{when},,Payment Refund Fee Reversal,Completed,USD,0.49,0.00,0.49,fee_{n},{ref},")
    if draw.random() < 0.1:
        made.append(
            f"{when},,Payment Refund Reversal,Completed,USD,{_major(minor)},0.00,{_major(minor)},back_{n},{ref},"
        )
    return made


def adyen_row(n: int, minor: int, ref: str, draw: random.Random) -> list[str]:
    """A refund as a debit; reversed as a credit now and then."""
    made = [f"Acme,AcmeEU,ch_{n},order,2026-01-{1 + n % 28:02} 10:00:00,CET,Refunded,{ref},USD,{_major(minor)},,R{n}"]
    if draw.random() < 0.1:
        made.append(
            f"Acme,AcmeEU,ch_{n},order,2026-01-29 10:00:00,CET,RefundedReversed,{ref},USD,,{_major(minor)},R{n}"
        )
    return made


REPORTS = {"stripe": (STRIPE, stripe_row), "paypal": (PAYPAL, paypal_row), "adyen": (ADYEN, adyen_row)}


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("seed", range(6))
def test_the_known_reports_are_read_both_ways_alike(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: str, seed: int
) -> None:
    """Types, fees, pending rows, attached rows, zones, American dates, debit columns, blanks; whole and for a period."""
    draw = random.Random(seed)
    header, row = REPORTS[report]
    made: list[str] = []
    for n in range(1, ITEMS - 3):
        wrong = draw.random()
        if wrong < 0.1:
            continue
        minor = 1000 + n + (5 if wrong < 0.2 else 0)
        ref = f"re_{n}" if wrong < 0.9 else f"re_other{n}"
        made += row(n, minor, ref, draw)
    if seed % 2:
        made = [text.replace(",", ", ", 2) for text in made]
    draw.shuffle(made)
    path = tmp_path / "statement.csv"
    path.write_text(header + "\n".join(made) + "\n")
    said = same(ledger, path, monkeypatch)
    assert said["classes"]["matched"] > 5
    bounded = same(
        ledger, path, monkeypatch, from_us=from_iso("2026-01-01T00:10:00Z"), to_us=from_iso("2026-01-20T00:00:00Z")
    )
    assert bounded["statement"]["rows"] == said["statement"]["rows"]


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_a_table_of_ones_own_is_read_both_ways_alike(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """Columns in any order, another separator, a type column nobody named, words that the first rows do not have."""
    separator = "\t" if suffix == "tsv" else ";"
    rows = [f"{_major(1000 + n)};USD;2026-01-01;re_{n};R{n};Payment".split(";") for n in range(1, ITEMS - 3)]
    rows[7][1], rows[9][5], rows[11][3] = "EUR", "Fee", "re_x"
    monkeypatch.setattr(bulk_read, "_SAMPLE", 5)
    path = tmp_path / f"statement.{suffix}"
    path.write_text(
        "\n".join(separator.join(row) for row in [["Betrag", "Currency", "Day", "Ref", "Ours", "Type"], *rows])
    )
    mapping = {"reference": "Ref", "own_reference": "Ours", "amount": "Betrag", "currency": "Currency", "time": "Day"}
    said = same(ledger, path, monkeypatch, mapping={**mapping, "decimal": "."})
    assert said["classes"]["matched"] > 40 and said["classes"]["currency_mismatch"] == 1


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
