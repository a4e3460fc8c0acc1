"""What goes into an input comes out of it: ids, targets, fields and amounts, through every format."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import duckdb
import xlsxwriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payonce.core.money import exponent, format_minor
from payonce.intake import InputSettings, ItemColumns, Query, read
from payonce.intake.amounts import AmountReader
from payonce.intake.block import Cells
from payonce.intake.canonical import encoded, joined
from payonce.intake.hashes import Hashes
from payonce.intake.ids import fault_of, trimmed
from payonce.intake.numbers import NumberFormat, number_format
from payonce.intake.validate import Sound

# (id, target, amount in minor units, currency, memo)
Row = tuple[str, str, int, str, str]
COLUMNS = ItemColumns(id="ref", target="charge", amount="amount", currency="currency")
NAMES = ("ref", "charge", "amount", "currency", "memo")

text = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40)
ids = (
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=512)
    .map(trimmed)
    .filter(lambda value: fault_of(value) is None)
)
currencies = st.sampled_from(["USD", "JPY", "KWD", "USDC"])
rows = st.lists(
    st.tuples(ids, ids, st.integers(1, 10**15), currencies, text), min_size=1, max_size=8, unique_by=lambda row: row[0]
)


def cells(row: Row) -> tuple[str, ...]:
    """A row as it is written, with a fraction that proves the decimal point where the currency has one."""
    amount = format_minor(row[2], row[3])
    return (row[0], row[1], f"{amount}0" if exponent(row[3]) == 3 else amount, row[3], row[4])


def write_csv(folder: Path, table: Sequence[Row]) -> str:
    """Delimited, quoted where needed."""
    with (folder / "in.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([NAMES, *map(cells, table)])
    return "in.csv"


def write_tsv(folder: Path, table: Sequence[Row]) -> str:
    """Everything quoted, in UTF-16."""
    with (folder / "in.tsv").open("w", encoding="utf-16", newline="") as file:
        csv.writer(file, delimiter="\t", quoting=csv.QUOTE_ALL).writerows([NAMES, *map(cells, table)])
    return "in.tsv"


def write_jsonl(folder: Path, table: Sequence[Row]) -> str:
    """One object a line."""
    lines = [json.dumps(dict(zip(NAMES, cells(row), strict=True)), ensure_ascii=len(row[4]) % 2 == 0) for row in table]
    (folder / "in.jsonl").write_text("\n".join(lines), encoding="utf-8", newline="")
    return "in.jsonl"


def write_xlsx(folder: Path, table: Sequence[Row]) -> str:
    """Texts in cells."""
    book = xlsxwriter.Workbook(folder / "in.xlsx")
    sheet = book.add_worksheet()
    for line, row in enumerate([NAMES, *map(cells, table)]):
        for place, cell in enumerate(row):
            sheet.write_string(line, place, cell)
    book.close()
    return "in.xlsx"


def write_parquet(folder: Path, table: Sequence[Row]) -> str:
    """Texts in columns."""
    with duckdb.connect() as database:
        database.execute("CREATE TABLE t (ref VARCHAR, charge VARCHAR, amount VARCHAR, currency VARCHAR, memo VARCHAR)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", [list(cells(row)) for row in table])
        database.execute(f"COPY t TO '{folder / 'in.parquet'}' (FORMAT parquet)")
    return "in.parquet"


def write_sqlite(folder: Path, table: Sequence[Row]) -> Query:
    """Texts in a table."""
    with sqlite3.connect(folder / "in.db") as database:
        database.execute("CREATE TABLE t (ref TEXT, charge TEXT, amount TEXT, currency TEXT, memo TEXT)")
        database.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", map(cells, table))
    database.close()
    return Query("sqlite:in.db", "SELECT * FROM t ORDER BY rowid")


Writer = Callable[[Path, Sequence[Row]], str | Query]


def check(write: Writer, table: Sequence[Row]) -> None:
    """Writes rows, reads them back, and compares all there is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = write(folder, table)
        with read(InputSettings(source=source, item=COLUMNS), base_dir=folder, operation="payout") as intake:
            assert list(intake.problems) == []
            found = [
                (
                    item.id,
                    item.target,
                    item.money.minor if item.money else 0,
                    item.money.currency if item.money else "",
                    item.fields["memo"],
                )
                for item in intake.items()
            ]
    assert found == [tuple(row) for row in table]


often = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
seldom = settings(often, max_examples=30)


@often
@given(rows)
def test_csv(table: list[Row]) -> None:
    """Comma-separated UTF-8."""
    check(write_csv, table)


@often
@given(rows)
def test_quoted_utf16(table: list[Row]) -> None:
    """Tab-separated UTF-16, all quoted."""
    check(write_tsv, table)


@often
@given(rows)
def test_json_lines(table: list[Row]) -> None:
    """JSON Lines, escaped and not."""
    check(write_jsonl, table)


@seldom
@given(rows)
def test_workbook(table: list[Row]) -> None:
    """Excel workbook."""
    check(write_xlsx, table)


@seldom
@given(rows)
def test_parquet(table: list[Row]) -> None:
    """Parquet file."""
    check(write_parquet, table)


@seldom
@given(rows)
def test_sqlite(table: list[Row]) -> None:
    """SQLite table."""
    check(write_sqlite, table)


anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@often
@given(st.lists(st.tuples(anything, anything, anything, anything), min_size=1, max_size=6), anything, anything)
def test_both_ways_to_write_canonical_lines_agree(table: list[tuple[str, ...]], first: str, second: str) -> None:
    """Where lines can be put together from columns they are, byte for byte, those of the encoder."""
    ids_, targets, one, two = (list(column) for column in zip(*table, strict=True))
    names = tuple(sorted({first, second}))
    made = Sound(
        range(len(ids_)),
        ids_,
        targets,
        [None, *range(1, len(ids_))],
        ["USD"] * len(ids_),
        Cells(names, (one, two)[: len(names)]),
    )
    assert joined(made) in ((b"", b""), encoded(made))


usual = st.from_regex(r"\A[0-9]{1,17}(\.[0-9]{1,3})?\Z") | st.sampled_from(
    ["0", "0.00", "500.00", "500.01", "1,5", " 1.00"]
)


@often
@given(st.lists(usual, min_size=1, max_size=8), st.sampled_from(["USD", "JPY", "KWD"]), st.booleans(), st.booleans())
def test_a_column_of_amounts_is_read_as_its_values_are(texts: list[str], code: str, minor: bool, limited: bool) -> None:
    """The quick way takes a whole column exactly as each value alone would be taken, or not at all."""
    limit = {code: 50_000} if limited else {}
    quick, slow = (AmountReader(number=NumberFormat(), minor=minor, max_amount=limit) for _ in range(2))
    for reader in (quick, slow):
        reader.read("1.00", code, line=1)
    found = quick.column(texts, code)
    wanted = [slow.read(text, code, line=2) for text in texts]
    assert found is None or (found == wanted and quick.evidence.count == slow.evidence.count)
    if code == "USD" and not minor and all(re.fullmatch(r"0*[1-9][0-9]?\.[0-9][0-9]", text) for text in texts):
        assert found is not None, "what is usual is taken quickly"


@often
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 30), max_size=200))
def test_repeated_hashes_are_found(values: list[int]) -> None:
    """Exactly those that occur more than once, also when looked for part by part."""
    wanted = {value for value in values if values.count(value) > 1}
    for part in (10**6, 3):
        column = Hashes(part=part)
        column.add(values)
        found, count = column.repeated(limit=1000)
        assert (found, count) == (wanted, len(wanted))
        column.close()


@often
@given(
    st.integers(0, 10**12),
    st.integers(0, 99),
    st.sampled_from([",", "."]),
    st.sampled_from(["", " ", "'", "\u00a0", "x"]),
)
def test_grouped_numbers_are_read_back(whole: int, cents: int, decimal: str, group: str) -> None:
    """Any number in any of the usual ways, under its declaration."""
    group = {"x": "." if decimal == "," else ","}.get(group, group)
    written = f"{whole:,}".replace(",", group) + f"{decimal}{cents:02d}"
    declared = number_format(decimal=decimal, thousands=group)
    assert declared is not None
    assert declared.plain(written) == f"{whole}.{cents:02d}"
