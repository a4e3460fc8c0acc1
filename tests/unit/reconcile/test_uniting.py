"""Several exports of one report: a row that stands in two of them is one row or two, which is proven, declared or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from payonce.reconcile.errors import StatementError
from payonce.reconcile.mapping import read_mapping
from payonce.reconcile.report import rows_json
from payonce.reconcile.statement import Statement, Wanted, read_statement

BARE: dict[str, Any] = {"target": "payee", "amount": "amount", "currency": {"value": "EUR"}, "time": "day"}
ACME = "Acme,5.00"


def export(folder: Path, name: str, *rows: str) -> Path:
    """A file of rows of payee, amount, day and reference."""
    path = folder / name
    path.write_text("payee,amount,day,ref\n" + "".join(f"{row}\n" for row in rows))
    return path


def read(*paths: Path, **mapping: Any) -> Statement:
    return read_statement(paths, Wanted("payout", read_mapping({**BARE, **mapping})))


def days(*numbers: int, rows: str = ACME) -> list[str]:
    return [f"{rows},2025-09-{day:02}," for day in numbers]


def paid(statement: Statement) -> int:
    """Cents, which both counts of the statement must give."""
    assert statement.net == {"EUR": sum(entry.executed for entry in statement.entries)}
    assert statement.rows == statement.used + len(statement.ignored)
    return statement.net["EUR"]


def test_exports_that_meet_on_one_day_prove_nothing(tmp_path: Path) -> None:
    """One may end where the other begins: a payment of that day in both may be one payment or two. It is asked, not
    guessed, and both answers are said in the report."""
    one, two = export(tmp_path, "one.csv", *days(1, 4)), export(tmp_path, "two.csv", *days(4, 8))
    with pytest.raises(StatementError) as refused:
        read(one, two)
    assert refused.value.code == "unclear_overlap" and "equal_rows" in (refused.value.hint or "")
    assert "1 equal row without a reference is in one.csv and in two.csv" in refused.value.message
    once, both = read(one, two, equal_rows="once"), read(one, two, equal_rows="all")
    assert (paid(once), paid(both)) == (1500, 2000)
    assert once.ignored == (("two.csv:2", "the same row is in one.csv"),) and both.ignored == ()
    where = "1 equal row without a reference is in one.csv and in two.csv"
    assert once.assumed == (f"{where}: counted once, as [statement] equal_rows says",)
    assert both.assumed == (f"{where}: counted in both, as [statement] equal_rows says",)
    assert rows_json(once.rows, once.used, once.ignored, once.assumed)["assumed"] == list(once.assumed)


def test_exports_that_say_the_same_of_a_whole_day_overlap(tmp_path: Path) -> None:
    """Days that neither of them begins or ends with are shown alike: rows are counted as often as the file with most has
    them."""
    one, two = export(tmp_path, "one.csv", *days(1, 3, 4, 4, 5)), export(tmp_path, "two.csv", *days(3, 4, 4, 5, 5, 7))
    found = read(one, two)
    assert paid(found) == 7 * 500  # days 1, 3, 4 twice, 5 twice, 7
    (said,) = found.assumed
    assert said.startswith(
        "4 equal rows without a reference are in one.csv and in two.csv: counted once, since the files"
    )
    assert "2025-09-03" in said and "2025-09-06" in said


def test_exports_that_each_show_something_else_are_apart(tmp_path: Path) -> None:
    """Two accounts of one time: equal payments of a day are two."""
    one = export(tmp_path, "one.csv", *days(1, 4, 8), *days(5, rows="Bolt,1.00"))
    two = export(tmp_path, "two.csv", *days(1, 4, 8), *days(6, rows="Cord,2.00"))
    found = read(one, two)
    assert paid(found) == 6 * 500 + 300
    assert "counted in both, since each shows rows" in found.assumed[0]


def test_more_in_one_than_in_the_other_proves_nothing(tmp_path: Path) -> None:
    """A later export of the same account, or another account that has these rows by chance."""
    one, two = export(tmp_path, "one.csv", *days(1, 4, 8)), export(tmp_path, "two.csv", *days(1, 4, 5, 8))
    with pytest.raises(StatementError) as refused:
        read(one, two)
    assert refused.value.code == "unclear_overlap"


def test_without_times_equal_rows_are_asked_about(tmp_path: Path) -> None:
    """Nothing says which time the files are of."""
    one, two = export(tmp_path, "one.csv", f"{ACME},,"), export(tmp_path, "two.csv", f"{ACME},,", "Bolt,1.00,,")
    with pytest.raises(StatementError, match="no times"):
        read(one, two)
    assert paid(read(one, two, equal_rows="all")) == 1100


@pytest.mark.parametrize(
    ("again", "expected", "words"), [("r1", 2100, "counted once"), ("r2", 3700, "counted in both")]
)
def test_rows_with_a_reference_prove_it(tmp_path: Path, again: str, expected: int, words: str) -> None:
    """One that is in both shows that the files overlap, one of the time that both cover that is not shows that they do
    not. The row itself is never counted twice."""
    one = export(tmp_path, "one.csv", *days(1, 4), "Bolt,1.00,2025-09-03,r1", *days(5))
    two = export(tmp_path, "two.csv", *days(1, 4), f"Bolt,1.00,2025-09-03,{again}", *days(5, 6))
    found = read(one, two, reference="ref")
    assert paid(found) == expected
    assert words in found.assumed[0]


def test_exports_of_different_times_keep_every_row(tmp_path: Path) -> None:
    """Rows without a time of their own are equal in both and are counted in both."""
    one = export(tmp_path, "one.csv", *days(1), f"{ACME},,")
    two = export(tmp_path, "two.csv", *days(8), f"{ACME},,")
    found = read(one, two)
    assert paid(found) == 2000 and found.assumed[0].endswith("since the files are of different times")


def test_nothing_is_assumed_where_no_row_is_equal(tmp_path: Path) -> None:
    """Different rows need no word, however the times of the files lie."""
    one, two = export(tmp_path, "one.csv", *days(1, 4)), export(tmp_path, "two.csv", *days(3, 8))
    assert (paid(read(one, two)), read(one, two).assumed) == (2000, ())
