"""What a message says: all that is wrong with a row at once, what was meant, and never more than can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.intake.intakekit import amounts, codes, only_problem, read_file


def written(tmp_path: Path, text: str) -> Path:
    """A CSV file with this text."""
    path = tmp_path / "in.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_a_bad_currency_does_not_hide_a_bad_amount(tmp_path: Path) -> None:
    """Both are told, so that one correction is enough; an amount that only its currency can judge is not blamed."""
    rows = "A1,five,ZZZ\nA2,,\nA3,1.234,ZZZ\nA4,$5,\n"
    with read_file(written(tmp_path, f"ref,amount,currency\n{rows}B1,1.00,USD\n")) as intake:
        found = [(problem.line, problem.code) for problem in intake.problems]
        assert found == [
            *[(2, "unknown_currency"), (2, "bad_amount"), (3, "missing_currency"), (3, "missing_amount")],
            *[(4, "unknown_currency"), (5, "missing_currency"), (5, "bad_amount")],
        ]
        assert intake.counts.refused == 4


def test_another_way_of_writing_is_named_as_that(tmp_path: Path) -> None:
    """A decimal comma among decimal points is no word and no symbol, also where it comes first."""
    with read_file(written(tmp_path, "ref;amount;currency\nA1;12,50;USD\nA2;12.50;USD\nA3;1.50;USD\n")) as intake:
        assert "decimal comma" in only_problem(intake).message and only_problem(intake).line == 2


@pytest.mark.parametrize("amount", ["9" * 1_000_000, "1." + "3" * 1_000_000, "x" * 1_000_000])
def test_a_huge_value_makes_no_huge_message(tmp_path: Path, amount: str) -> None:
    """Nobody reads a million digits."""
    with read_file(written(tmp_path, f"ref,amount,currency\nA1,{amount},USD\n")) as intake:
        problem = only_problem(intake)
        assert problem.code == "bad_amount"
        assert len(problem.message) < 300 and problem.value is not None and len(problem.value) < 300


def test_a_huge_header_makes_no_huge_message(tmp_path: Path) -> None:
    """Neither its names nor the list of them."""
    columns = ",".join(f"{'c' * 3000}{number}" for number in range(40))
    with read_file(written(tmp_path, f"{columns}\n")) as intake:
        assert all(len(problem.message) < 10_000 for problem in intake.problems)


def test_zeros_at_the_end_of_an_amount_lose_nothing(tmp_path: Path) -> None:
    """However many there are."""
    with read_file(written(tmp_path, f"ref,amount,currency\nA1,1.5{'0' * 50},USD\n")) as intake:
        assert amounts(intake) == {"A1": "1.50 USD"}


def test_an_unknown_delimiter_is_asked_for(tmp_path: Path) -> None:
    """Where all columns stand in one, the message says what to declare."""
    path = written(tmp_path, "ref^amount^currency\nA1^1.00^USD\n")
    with read_file(path) as intake:
        assert all("[input] delimiter" in problem.message for problem in intake.problems)
        assert codes(intake) == {1: "missing_column"}
    with read_file(path, delimiter="^") as intake:
        assert amounts(intake) == {"A1": "1.00 USD"}


@pytest.mark.parametrize(("found", "shown"), [("cafe\u0301", r"'cafe\u0301'"), ("caf\u00e9\u200b", r"'caf\xe9\u200b'")])
def test_a_column_that_looks_the_same_is_spelt_out(tmp_path: Path, found: str, shown: str) -> None:
    """Composed and decomposed letters, and invisible characters, cannot be told apart on a screen."""
    path = written(tmp_path, f"{found},amount,currency\nA1,1.00,USD\n")
    with read_file(path, id="caf\u00e9", amount="amount", currency="currency") as intake:
        assert shown in only_problem(intake).message and "looks the same" in only_problem(intake).message


def test_a_sum_in_any_language_is_noted(tmp_path: Path) -> None:
    """An item as large as all others together may be the row of totals; among few items it may be chance."""
    rows = "A1,5.00,USD\nA2,6.00,USD\nA3,1.00,USD\n"
    with read_file(written(tmp_path, f"ref,amount,currency\n{rows}Jumla,12.00,USD\n")) as intake:
        assert intake.ok
        (note,) = intake.notes
        assert (note.code, note.line) == ("sum_row", 5) and "'Jumla'" in note.message
    with read_file(written(tmp_path, f"ref,amount,currency\n{rows}A4,12.01,USD\n")) as intake:
        assert not intake.notes
    with read_file(written(tmp_path, "ref,amount,currency\nA1,1.00,USD\nA2,2.00,USD\nA3,3.00,USD\n")) as intake:
        assert not intake.notes


def test_ignored_rows_are_told_in_their_order(tmp_path: Path) -> None:
    """Blank lines of whatever sort, one after another."""
    with read_file(written(tmp_path, "ref,amount,currency\n,,\n\n , ,\nA1,1.00,USD\n\n,,\n")) as intake:
        assert [row.line for row in intake.ignored] == [2, 3, 4, 6, 7]


@pytest.mark.parametrize(("name", "advice"), [("in.xls", ".xlsx"), ("in.csv.gz", "unpack"), ("in.json", "jq")])
def test_an_unknown_ending_comes_with_what_to_do(tmp_path: Path, name: str, advice: str) -> None:
    """The usual ones are known for what they are."""
    (tmp_path / name).write_bytes(b"x")
    with read_file(tmp_path / name) as intake:
        assert only_problem(intake).code == "unknown_format" and advice in only_problem(intake).message


def test_where_no_column_fits_the_header_may_be_elsewhere(tmp_path: Path) -> None:
    """A header far below is not searched for without end; the message says how to name its place."""
    text = "\n".join(f"line {number}" for number in range(150)) + "\nref,amount,currency\nA1,1.00,USD\n"
    with read_file(written(tmp_path, text)) as intake:
        assert all("preamble = N" in problem.message for problem in intake.problems)
    with read_file(written(tmp_path, text), preamble=150) as intake:
        assert amounts(intake) == {"A1": "1.00 USD"}


def test_ids_that_look_the_same_are_told_apart(tmp_path: Path) -> None:
    """The note that names two near ids would otherwise show one of them twice."""
    with read_file(written(tmp_path, "ref,amount,currency\ncaf\u00e9,1.00,USD\ncafe\u0301,1.00,USD\n")) as intake:
        (note,) = [note for note in intake.notes if note.code == "near_ids"]
        assert r"'caf\xe9' (line 2) and 'cafe\u0301' (line 3)" in note.message
