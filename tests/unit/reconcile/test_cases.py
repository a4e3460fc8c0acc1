"""The case files: faults that people who reconcile have reported, each with the outcome that must hold."""

from __future__ import annotations

import csv
import io
import random

import pytest

from payonce.core.events import from_iso
from payonce.reconcile.errors import StatementError
from payonce.reconcile.match import reconcile
from payonce.reconcile.model import Coverage, Kind, Proof
from tests.unit.reconcile.kit import CASES, case, ledger_of, read

REF = {"reference": "ref", "amount": "amount", "currency": "currency"}
DKB = {"reference": "Kundenreferenz", "amount": "Betrag (€)", "currency": {"value": "EUR"}, "time": "Buchungsdatum"}
SENT = from_iso("2025-09-04T10:00:00Z")


def legs(statement) -> dict[str, int]:
    """Executed minor units by reference."""
    return {entry.reference: entry.executed for entry in statement.entries if entry.legs}


def test_preamble_bom_semicolons_and_decimal_comma() -> None:
    """Three rows; a whole number and one decimal digit are read exactly; the lines above the header are named."""
    found = case("dkb_bom_preamble.csv", **DKB)
    assert found.used == 3 and found.net == {"EUR": -144526}
    assert legs(found) == {"RF-0001": 123456, "RF-0002": 10000, "RF-0003": 11070}
    assert [name for name, why in found.ignored if why == "above the header"] == ["1", "2", "3", "4"]
    assert found.rows == found.used + len(found.ignored)


def test_thousands_commas_and_a_pending_row() -> None:
    """1,250.00 is one thousand two hundred and fifty; what is pending is no execution."""
    found = case("paypal_en_thousands.csv")
    assert legs(found) == {"0RF00000000000001": 125000, "0RF00000000000002": 1250}
    assert [e.reference for e in found.entries if e.pending] == ["0RF00000000000003"]


def test_one_refund_and_three_rows_that_belong_to_it() -> None:
    """Exchange legs and the fee's reversal stay with the refund; nothing is a refund of its own."""
    found = case("paypal_fx_four_rows.csv")
    (entry,) = found.entries
    assert legs(found) == {"0RF00000000000021": 5000} and entry.currency == "USD"
    assert [row.role for row in entry.attached] == ["fx", "fx", "fee"] and not found.loose
    assert found.net == {"USD": 49, "EUR": -4630}


@pytest.mark.parametrize("types", [{}, {"type": "kind", "types": {"DEBIT": "execution", "FEE": "fee"}}])
def test_a_fee_under_the_payments_own_id(types) -> None:
    """Two payments and one fee, whether the type column is named or found."""
    mapping = {"reference": "fitid", "amount": "amount", "currency": "currency", "time": "posted", **types}
    found = case("same_id_purchase_and_fee.csv", operation="payout", **mapping)
    assert found.used == 3 and found.net == {"USD": -20300}
    assert [entry.legs for entry in found.entries] == [(10000,), (10000,)]
    assert [row.role for entry in found.entries for row in entry.attached] == ["fee"]


def test_equal_rows_are_counted_and_never_merged() -> None:
    """Paid, given back, paid again: three rows, two of them equal."""
    mapping = {"target": "Name", "amount": "Amount", "currency": {"value": "EUR"}, "time": "Date", "sign": "negative"}
    found = case("identical_rows_legit.csv", operation="payout", **mapping)
    assert found.used == 3 and found.net == {"EUR": -1300}
    assert sum(entry.net for entry in found.entries) == 1300


def test_bare_carriage_returns() -> None:
    """Two rows."""
    assert legs(case("cr_only.csv", **REF)) == {"C1": 1000, "C2": 1100}


def test_line_breaks_inside_fields() -> None:
    """Three rows, each named by the line at which it starts."""
    found = case("quoted_newline_crlf.csv", **REF)
    assert {entry.reference: entry.rows for entry in found.entries} == {"Q1": ("2",), "Q2": ("4",), "Q3": ("6",)}
    assert found.net == {"USD": 3300}


def test_a_renamed_column_is_named_with_what_is_there_instead() -> None:
    """Read before the bank's change, refused after it."""
    mapping = {"reference": "Kundenreferenz", "amount": "Betrag (EUR)", "currency": {"value": "EUR"}}
    assert legs(case("renamed_columns_old.csv", **mapping)) == {"RF-0301": 1000}
    with pytest.raises(StatementError, match=r"'Betrag \(EUR\)' missing, found 'Betrag'"):
        case("renamed_columns_new.csv", **mapping)


def test_float_money_and_float_ids_are_refused() -> None:
    """The column is named; no digit is guessed."""
    with pytest.raises(StatementError, match="binary floats") as money:
        case("amounts_float64.parquet", reference="charge_id", amount="amount", currency={"value": "USD"})
    assert money.value.code == "float_money"
    with pytest.raises(StatementError) as ids:
        case("ids_as_float64.parquet", reference="charge_id", amount="amount", currency={"value": "USD"})
    assert ids.value.code in ("float_ids", "float_money")


def test_ids_that_differ_only_in_case_are_two_ids() -> None:
    """k1 by its reference, k2 alone on its target; k3 is a near miss and no match."""
    mapping = {"reference": "refund_id", "target": "charge_id", "amount": "amount", "currency": "currency"}
    statement = case("statement_ids_case.csv", **mapping)
    lines = ledger_of("statement_ids_case_ops.csv", at_us=SENT)
    found = reconcile(lines, statement.entries, Coverage(0, 2**60))
    assert {item: statement.entries[number].reference for item, number in found.pairs.items()} == {
        "k1": "re_1AbC", "k2": "re_1aBc"}  # fmt: skip
    assert found.near_misses["k3"].startswith("CH_9XYZ differs only by case from ch_9X")
    assert [proven.line.item for proven in found.proven if proven.proof is Proof.EXECUTED] == ["k2"]


def test_a_near_miss_says_what_it_misses_by() -> None:
    """Without k1 the first row is nobody's, and the suggestion names k3."""
    mapping = {"reference": "refund_id", "target": "charge_id", "amount": "amount", "currency": "currency"}
    statement = case("statement_ids_case.csv", **mapping)
    lines = [line for line in ledger_of("statement_ids_case_ops.csv", at_us=SENT) if line.item != "k1"]
    found = reconcile(lines, statement.entries, statement.coverage)
    (stranger,) = [d for d in found.discrepancies if d.kind is Kind.MISSING_IN_LEDGER]
    assert stranger.suggestion == "differs only by case from item k3"


def test_the_balance_export_with_everything_in_it() -> None:
    """Refunds matched, one came back, one proven executed, one missing, one stranger; disputes and captures are none."""
    statement = case("stripe_balance_export_fee_rows.csv")
    assert statement.net == {"USD": 2000}
    lines = ledger_of("stripe_balance_export_ops.csv", at_us=SENT)
    found = reconcile(lines, statement.entries, statement.coverage)
    assert {kind.value: count for kind, count in found.counts.items() if count} == {
        "matched": 3, "status_mismatch": 2, "missing_at_provider": 1, "missing_in_ledger": 1}  # fmt: skip
    of = {d.item: d for d in found.discrepancies}
    assert of["op2"].kind is Kind.STATUS_MISMATCH and of["op2"].rows == ("5", "6") and of["op2"].statement == 0
    assert of["op7"].kind is Kind.MISSING_AT_PROVIDER and of["op7"].ledger == 900
    assert (of[None].reference, of[None].statement) == ("re_X", 1200)
    proofs = {proven.line.item: proven for proven in found.proven}
    assert proofs["op5"].proof is Proof.EXECUTED and proofs["op5"].entry.reference == "re_D"
    assert proofs["op2"].proof is Proof.RETURNED
    assert "op6" not in found.pairs
    assert Kind.DUPLICATE not in {d.kind for d in found.discrepancies}


KNOWN = {
    "paypal_en_thousands.csv": ({}, "refund", ","),
    "paypal_fx_four_rows.csv": ({}, "refund", ","),
    "stripe_balance_export_fee_rows.csv": ({}, "refund", ","),
    "same_id_purchase_and_fee.csv": (
        {"reference": "fitid", "amount": "amount", "currency": "currency", "time": "posted"}, "payout", ","),
    "quoted_newline_crlf.csv": (REF, "refund", ","),
    "dkb_bom_preamble.csv": (DKB, "refund", ";"),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_the_same_rows_written_in_another_way_say_the_same(tmp_path, name) -> None:
    """Columns in another order, other separators, line ends, quotes and encodings, lines above the header, blank lines, a
    column more, and exports that overlap: rows, sums and entries stay."""
    mapping, operation, delimiter = KNOWN[name]
    usual = says(case(name, operation=operation, **mapping))
    rows = list(
        csv.reader(io.StringIO((CASES / name).read_bytes().decode("utf-8-sig"), newline=""), delimiter=delimiter)
    )
    top = next(place for place, row in enumerate(rows) if sum(map(bool, row)) > 2)
    head, body = rows[top], [row for row in rows[top + 1 :] if any(row)]
    order = list(range(len(head)))
    random.Random(name).shuffle(order)
    whole, half = [head, *body], len(body) // 2
    variants = {
        "order.csv": ([[row[n] for n in order] for row in whole], {}), "semicolon.csv": (whole, {"delimiter": ";"}),
        "tab.tsv": (whole, {"delimiter": "\t"}), "quoted.csv": (whole, {"quoting": csv.QUOTE_ALL}),
        "utf16.csv": (whole, {"encoding": "utf-16"}), "cr.csv": (whole, {"lineterminator": "\r"}),
        "above.csv": ([["Report"], ["Account", "x"], [], *whole], {}), "more.csv": ([[*row, "z"] for row in whole], {}),
        "blank.csv": ([line for row in whole for line in (row, [""])], {}),
    }  # fmt: skip
    for file, (lines, form) in variants.items():
        made = put(tmp_path / file, lines, **form)
        assert says(read(made, operation=operation, **mapping)) == usual, file
    parts = [put(tmp_path / "1.csv", [head, *body[: half + 1]]), put(tmp_path / "2.csv", [head, *body[half:]])]
    assert says(read(*parts, operation=operation, **mapping)) == usual


def put(path, rows, *, encoding="utf-8", **form):
    text = io.StringIO(newline="")
    csv.writer(text, **form).writerows(rows)
    path.write_bytes(text.getvalue().encode(encoding))
    return path


def says(statement):
    """What a statement says, whatever its rows are called and where they stand."""
    entries = sorted(
        (
            e.reference or "",
            e.currency,
            e.legs,
            e.returned,
            e.pending,
            e.failed,
            [(a.role, a.money) for a in e.attached],
        )
        for e in statement.entries
    )
    return statement.used, dict(statement.net), entries
