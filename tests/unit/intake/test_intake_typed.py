"""Workbooks, Parquet files and queries: typed values exactly, floats never as ids or money."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import xlsxwriter

from tests.unit.intake.intakekit import amounts, case, codes, only_problem, read_file

Rows = Sequence[Sequence[Any]]
HEADER = ("ref", "amount", "currency", "memo")


def workbook(path: Path, **sheets: Rows) -> Path:
    """A workbook with these sheets; texts are written as texts, also those that look like numbers."""
    book = xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd", "strings_to_numbers": False})
    for name, rows in sheets.items():
        sheet = book.add_worksheet(name)
        for place, row in enumerate(rows):
            sheet.write_row(place, 0, row)
    book.close()
    return path


def parquet(path: Path, query: str) -> Path:
    """A Parquet file with the result of a query."""
    with duckdb.connect() as database:
        database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


def test_a_workbook_is_read_with_its_row_numbers(tmp_path: Path) -> None:
    """Text ids keep their zeros; number cells give the amounts that were typed; blank rows are ignored."""
    rows: Rows = [
        ("Refunds of March", "", "", ""),
        (),
        HEADER,
        ("00123", 19.99, "USD", "x"),
        ("A2", "8.20", "usd", dt.date(2025, 3, 1)),
        (),
        ("A3", 100, "JPY", 12.5),
        ("A4", 1234567.89, "USD", True),
    ]
    with read_file(workbook(tmp_path / "in.xlsx", Data=rows)) as intake:
        assert amounts(intake) == {"00123": "19.99 USD", "A2": "8.20 USD", "A3": "100 JPY", "A4": "1234567.89 USD"}
        assert [item.line for item in intake.items()] == [4, 5, 7, 8]
        assert [item.fields["memo"] for item in intake.items()] == ["x", "2025-03-01", "12.5", "TRUE"]
        assert [entry.line for entry in intake.ignored] == [1, 2, 6]


def test_number_cells_are_no_ids_and_computed_ones_no_amounts(tmp_path: Path) -> None:
    """A number cell may have lost zeros; more than 15 digits are no typed number."""
    rows: Rows = [
        HEADER,
        (123, 1, "USD", ""),
        ("A2", 1 / 3, "USD", ""),
        ("A3", 1.005, "USD", ""),
        ("A4", True, "USD", ""),
    ]
    with read_file(workbook(tmp_path / "in.xlsx", Data=rows)) as intake:
        assert codes(intake) == {2: "float_id", 3: "float_money", 4: "not_representable", 5: "bad_amount"}


def test_errors_in_cells_do_not_become_items(tmp_path: Path) -> None:
    """A formula that failed gives no id."""
    book = xlsxwriter.Workbook(tmp_path / "in.xlsx")
    sheet = book.add_worksheet()
    sheet.write_row(0, 0, HEADER)
    sheet.write_formula(1, 0, "=NA()", None, "#N/A")
    sheet.write_row(1, 1, (1, "USD", "x"))
    book.close()
    with read_file(tmp_path / "in.xlsx") as intake:
        assert codes(intake) == {2: "mangled_id"}
        assert only_problem(intake).value == "#N/A"


def test_the_sheet_is_found_by_its_columns_or_asked_for(tmp_path: Path) -> None:
    """One fitting sheet is taken; of several, or of none, the name is asked for."""
    sound: Rows = [HEADER, ("A1", 1, "USD", "")]
    usual = {"id": "ref", "amount": "amount", "currency": "currency"}
    with read_file(workbook(tmp_path / "a.xlsx", Notes=[("x",)], Data=sound, Empty=[])) as intake:
        assert amounts(intake) == {"A1": "1.00 USD"}
    two = workbook(tmp_path / "b.xlsx", One=sound, Two=sound)
    with read_file(two) as intake:
        assert only_problem(intake).code == "missing_sheet"
        assert "'One', 'Two'" in only_problem(intake).message
    with read_file(two, sheet="Two", **usual) as intake:
        assert intake.ok
    with read_file(two, sheet="Tow", **usual) as intake:
        assert only_problem(intake).code == "missing_sheet"
    with read_file(workbook(tmp_path / "c.xlsx", Empty=[])) as intake:
        assert only_problem(intake).code == "empty_file"
    with read_file(workbook(tmp_path / "d.xlsx", One=[("Ref", "amount", "currency")])) as intake:
        assert "did you mean 'Ref'" in only_problem(intake).message


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"ref,amount\n", b"PK\x05\x06" + b"\0" * 18])
def test_what_is_no_workbook_is_refused(tmp_path: Path, data: bytes) -> None:
    """Damaged and misnamed files."""
    (tmp_path / "in.xlsx").write_bytes(data)
    with read_file(tmp_path / "in.xlsx") as intake:
        assert only_problem(intake).code in ("unreadable", "empty_file", "wrong_format")


def test_float_columns_of_parquet_files_are_refused_whole() -> None:
    """A double is no amount and no id; the column is named once, no row is read."""
    with case("amounts_float64.parquet", id="charge_id", amount="amount", currency="currency") as intake:
        assert (only_problem(intake).code, only_problem(intake).column) == ("float_money", "amount")
    with case("ids_as_float64.parquet", id="charge_id", amount="amount", currency="currency") as intake:
        assert (only_problem(intake).code, only_problem(intake).column) == ("float_id", "charge_id")


def test_parquet_types(tmp_path: Path) -> None:
    """Decimals and whole numbers are exact; times, lists and objects are carried as JSON values."""
    query = """
        SELECT * FROM (VALUES
            (7, 12.50::DECIMAL(18,2), 'USD', DATE '2025-03-01', [1, 2], {'a': 'x'}, 0.5::DOUBLE, NULL),
            (8, 0.01::DECIMAL(18,2), 'EUR', NULL, NULL, NULL, NULL, 'é'))
        AS t(ref, amount, currency, "day", list, object, rate, note)
    """
    with read_file(parquet(tmp_path / "odd *name?.parquet", query)) as intake:
        assert amounts(intake) == {"7": "12.50 USD", "8": "0.01 EUR"}
        first, second = intake.items()
        assert first.fields == {"day": "2025-03-01", "list": [1, 2], "object": {"a": "x"}, "rate": 0.5, "note": None}
        assert second.fields["note"] == "é"
        assert [item.line for item in intake.items()] == [1, 2]


def test_nanoseconds_are_not_lost(tmp_path: Path) -> None:
    """Python's times end at microseconds; such a column is carried as text."""
    query = (
        "SELECT 'A' AS ref, 1 AS amount, 'USD' AS currency, TIMESTAMP_NS '2024-01-01 00:00:00.123456789' AS \"at \"\"\""
    )
    with read_file(parquet(tmp_path / "in.parquet", query)) as intake:
        assert next(intake.items()).fields == {'at "': "2024-01-01 00:00:00.123456789"}


def test_parquet_values_that_cannot_be_carried(tmp_path: Path) -> None:
    """Binary data and endless numbers are refused in their row, unless their column is left out."""
    query = """
        SELECT 'A' || i AS ref, 1 AS amount, 'USD' AS currency,
               CASE i WHEN 1 THEN 'nan'::DOUBLE ELSE 1 END AS rate, CASE i WHEN 2 THEN '\\x00'::BLOB END AS raw
        FROM range(4) t(i)
    """
    path = parquet(tmp_path / "in.parquet", query)
    with read_file(path) as intake:
        assert codes(intake) == {2: "uncarried_value", 3: "uncarried_value"}
        assert list(amounts(intake)) == ["A0", "A3"]
    with read_file(path, id="ref", amount="amount", currency="currency", fields=()) as intake:
        assert intake.counts.items == 4


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\0" * 50 + b"PAR1", b"ref,amount\n"])
def test_what_is_no_parquet_file_is_refused(tmp_path: Path, data: bytes) -> None:
    """Damaged and misnamed files."""
    (tmp_path / "in.parquet").write_bytes(data)
    with read_file(tmp_path / "in.parquet") as intake:
        assert only_problem(intake).code == "unreadable"


Maker = Callable[[Path, Rows], Path]


def _csv(path: Path, rows: Rows) -> Path:
    target = path / "in.csv"
    quoted = ['"' + str(cell).replace('"', '""') + '"' for row in [HEADER, *rows] for cell in row]
    lines = [";".join(quoted[start : start + 4]) for start in range(0, len(quoted), 4)]
    target.write_bytes(("\n".join(lines) + "\n").encode())
    return target


def _xlsx(path: Path, rows: Rows) -> Path:
    return workbook(path / "in.xlsx", Data=[HEADER, *rows])


def _parquet(path: Path, rows: Rows) -> Path:
    with duckdb.connect() as database:
        database.execute("CREATE TABLE t (ref VARCHAR, amount VARCHAR, currency VARCHAR, memo VARCHAR)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [list(row) for row in rows])
        database.execute(f"COPY t TO '{path / 'in.parquet'}' (FORMAT parquet)")
    return path / "in.parquet"


# Of two canonical lines; it must never change, or sealed batches would seem to have.
SEAL = "a1ee988c3281d9feb3efe766a9566ec7b82332ad53d68ece1826f9bffddb2e5b"


@pytest.mark.parametrize("make", [_csv, _xlsx, _parquet])
def test_the_seal_does_not_depend_on_the_format(tmp_path: Path, make: Maker) -> None:
    """The same texts in another format are the same batch."""
    rows: Rows = [("00123", "12.50", "USD", 'a "b" \\ é'), ("A2", "1,234.5", "EUR", "x; y")]
    with read_file(make(tmp_path, rows)) as intake:
        assert intake.seal == SEAL


def parquet_of(path: Path, names: list[str], columns: list[Any]) -> Path:
    """A Parquet file whose columns may have any names."""
    pyarrow = pytest.importorskip("pyarrow")
    pyarrow.parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(list(map(pyarrow.array, columns)), names=names), path)
    return path


def test_of_two_columns_with_one_name_none_is_taken(tmp_path: Path) -> None:
    """DuckDB would call the second one something else and read the first."""
    path = parquet_of(
        tmp_path / "in.parquet", ["ref", "amount", "amount", "currency"], [["A1"], ["1"], ["100"], ["USD"]]
    )
    with read_file(path) as intake:
        assert only_problem(intake).code == "repeated_column"


def test_columns_that_differ_in_case_only_keep_their_names(tmp_path: Path) -> None:
    """The mapping names one of them, exactly; parts of a nested column do not count."""
    names = ["o", "Betrag", "betrag", "ref", "currency"]
    path = parquet_of(tmp_path / "in.parquet", names, [[{"ref": 1, "l": [{"x": 2}]}], ["1"], ["100"], ["A1"], ["USD"]])
    for name, amount in (("Betrag", "1.00 USD"), ("betrag", "100.00 USD")):
        with read_file(path, id="ref", amount=name, currency="currency") as intake:
            assert amounts(intake) == {"A1": amount}
            assert set(intake.columns) == set(names)


def test_decimals_that_would_become_floats_are_refused(tmp_path: Path) -> None:
    """More digits than DuckDB keeps: neither as money nor as a carried value."""
    pyarrow = pytest.importorskip("pyarrow")
    wide = pyarrow.array([Decimal("1.00")], pyarrow.decimal256(50, 2))
    path = parquet_of(tmp_path / "in.parquet", ["ref", "amount", "currency", "memo"], [["A1"], ["1"], ["USD"], wide])
    with read_file(path) as intake:
        assert (only_problem(intake).column, only_problem(intake).code) == ("memo", "uncarried_value")
    with read_file(path, id="ref", amount="amount", currency="currency", fields=()) as intake:
        assert intake.ok


def test_nothing_is_shown_as_nothing(tmp_path: Path) -> None:
    """A missing id has no value, and none that reads like a word."""
    with read_file(parquet(tmp_path / "in.parquet", "SELECT NULL AS ref, '1' AS amount, 'USD' AS currency")) as intake:
        assert (only_problem(intake).code, only_problem(intake).value) == ("missing_id", None)
