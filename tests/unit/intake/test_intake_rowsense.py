"""Rows that one row alone does not show to be wrong: above the header, inside of quotes, behind the last column."""

from __future__ import annotations

from pathlib import Path

import pytest

from payonce.intake import Expect
from tests.unit.intake.intakekit import amounts, codes, only_problem, read_file

ITEM = {"id": "ref", "amount": "amount", "currency": "currency"}
CALL = {"id": "ref"}


def written(tmp_path: Path, text: str) -> Path:
    """A CSV file with this text."""
    path = tmp_path / "in.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_a_sorted_file_does_not_lose_what_came_to_stand_above_its_header(tmp_path: Path) -> None:
    """``sort`` moves the header down: the rows above it are items, and none is taken for a preamble."""
    path = written(tmp_path, "A1,10.00,USD\nA2,11.00,USD\nref,amount,currency\nz1,5.00,USD\n")
    with read_file(path) as intake:
        problem = only_problem(intake)
        assert (problem.code, problem.line, problem.value) == ("rows_above_header", 1, "A1,10.00,USD")
        assert "preamble = 2" in problem.message
    with read_file(path, preamble=2) as intake:
        assert intake.ok and amounts(intake) == {"z1": "5.00 USD"}


@pytest.mark.parametrize(
    "above", [";;\n", "Report;;\nTotal;1.234,50;EUR?\n", ";1.234,50;EUR\n", "Konto;12;\n", "2026;1,50;\n"]
)
def test_a_preamble_as_wide_as_the_table_is_still_one(tmp_path: Path, above: str) -> None:
    """Spreadsheets pad the lines above a header with delimiters; what has no id, amount and currency is no item."""
    with read_file(written(tmp_path, f"{above}ref;amount;currency\nA1;1,50;EUR\n")) as intake:
        assert intake.ok and amounts(intake) == {"A1": "1.50 EUR"}


def test_rows_of_calls_above_the_header_are_seen_too(tmp_path: Path) -> None:
    """Without amounts, a row without a blank cell reads like an item."""
    path = written(tmp_path, "A1,hello\nref,prompt\nz1,hi\n")
    with read_file(path, operation="call", **CALL) as intake:
        assert codes(intake) == {1: "rows_above_header"}


@pytest.mark.parametrize("again", ["ref,amount,currency", "\ufeffref,amount,currency", '"ref","amount","currency"'])
def test_the_header_of_a_second_file_is_named_as_that(tmp_path: Path, again: str) -> None:
    """Files put behind each other: the second header is no item with a bad amount."""
    path = written(tmp_path, f"ref,amount,currency\nA1,10.00,USD\n{again}\nA2,11.00,USD\n")
    with read_file(path) as intake:
        assert codes(intake) == {3: "repeated_header"}
        assert len(intake.problems) == 1


def test_a_second_header_is_no_call(tmp_path: Path) -> None:
    """Where there is no amount, nothing else would keep it from being paid for."""
    path = written(tmp_path, "ref,prompt\nA1,hello\nref,prompt\nA2,ref\nref,other\n")
    with read_file(path, operation="call", skip_bad_rows=True, **CALL, fields=("prompt",)) as intake:
        assert codes(intake) == {3: "repeated_header", 5: "repeated_header"}
        assert [item.id for item in intake.items()] == ["A1", "A2"]


def test_an_amount_is_not_cut_at_its_thousands_comma(tmp_path: Path) -> None:
    """``1,234.00`` without quotes goes on into a column without a name: it is no 1.00."""
    path = written(tmp_path, "ref,amount,\nA1,10.00,\nA2,1,234.00\nA3,5.00, \n")
    with read_file(path, id="ref", amount="amount", currency_value="USD", skip_bad_rows=True) as intake:
        assert codes(intake) == {3: "ragged_row"}
        assert next(iter(intake.problems)).value == "A2,1,234.00"
        assert amounts(intake) == {"A1": "10.00 USD", "A3": "5.00 USD"}


def test_columns_without_a_name_before_others_are_only_left_out(tmp_path: Path) -> None:
    """The index that a data frame writes has no name and harms nobody."""
    with read_file(written(tmp_path, ",ref,amount,currency\n0,A1,10.00,USD\n")) as intake:
        assert intake.ok and amounts(intake) == {"A1": "10.00 USD"}


SWALLOWED = 'ref,amount,currency,memo\nA1,1.00,USD,"a\nA2,2.00,USD,b\nA3,3.00,USD,c"\nA4,4.00,USD,d\n'


@pytest.mark.parametrize("skip", [False, True])
def test_a_quote_too_many_does_not_swallow_rows(tmp_path: Path, skip: bool) -> None:
    """Rows inside of a quoted text would be lost without a trace; leaving bad rows out does not cure it."""
    with read_file(written(tmp_path, SWALLOWED), skip_bad_rows=skip) as intake:
        problem = only_problem(intake)
        assert (problem.code, problem.line, problem.value) == ("swallowed_row", 2, 'A1,1.00,USD,"a')
        assert "line 3" in problem.message and "A2,2.00,USD,b" in problem.message and not intake.ok


def test_control_totals_prove_that_a_text_is_meant_like_that(tmp_path: Path) -> None:
    """A memo may quote a row; that no item is lost is said by their number."""
    with read_file(written(tmp_path, SWALLOWED), expect=Expect(items=2)) as intake:
        assert intake.ok and amounts(intake) == {"A1": "1.00 USD", "A4": "4.00 USD"}
    with read_file(written(tmp_path, SWALLOWED), expect=Expect(items=4)) as intake:
        assert codes(intake) == {None: "expected_items"}


@pytest.mark.parametrize(
    "memo", ["a\nb, c, 2.00, d", "a\nA2,2.00,words,b", "a\n,2.00,USD,b", "a\nA2,b,USD,c", "1\n2\n3"]
)
def test_texts_of_several_lines_are_texts(tmp_path: Path, memo: str) -> None:
    """Only a line with an id, an amount and a currency in their places reads like a row."""
    with read_file(written(tmp_path, f'ref,amount,currency,memo\nA1,1.00,USD,"{memo}"\n')) as intake:
        assert intake.ok and intake.counts.items == 1


def test_broken_quotes_over_several_lines_cannot_be_left_out_alone(tmp_path: Path) -> None:
    """Where a stray quote ends in another row, nobody knows which rows it holds: skipping them would lose items."""
    text = 'ref,amount,currency,memo\nA1,1.00,USD,"a\nA2,2.00,USD,b\nA3,3.00,USD,"c"\nA4,4.00,USD,d\n'
    with read_file(written(tmp_path, text), skip_bad_rows=True) as intake:
        problem = only_problem(intake)
        assert (problem.code, problem.line) == ("bad_quotes", 2)
        assert "line 4" in problem.message and not intake.ok
