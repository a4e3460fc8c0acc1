"""No input file, however broken, ends in anything but a reading: items, or problems that say why not."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import xlsxwriter
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from payonce.core.errors import InputError
from payonce.intake import FileFormat, InputSettings, ItemColumns, read

ROWS = [
    ("ref", "amount", "currency", "memo"),
    ("00123", "1,234.50", "USD", 'said "hello"\nthen left'),
    ("ch_1", "19.99", "usd", "é ü 東京"),
    ("ch_2", "5800", "JPY", ""),
    ("ch_1", "19.99", "USD", "x"),
    (" 12E4 ", "0.50", "EUR", "a; b | c\td"),
    ("1.23E+15", "-5", "", "'=x"),
]
UNDECLARED = FileFormat()
COLUMNS = ItemColumns(id="ref", amount="amount", currency="currency")


def _delimited(delimiter: str, end: str, encoding: str) -> bytes:
    rows = [
        delimiter.join('"' + cell.replace('"', '""') + '"' if place != 1 else cell for place, cell in enumerate(row))
        for row in ROWS
    ]
    rows[2] = rows[2].replace('"', "")
    text = end.join(rows).replace("1,234.50", '"1,234.50"')
    return (text + end).encode(encoding)


def _json_lines() -> bytes:
    lines = [
        '{"ref":"00123","amount":"1,234.50","currency":"USD","memo":"x","n":1.50}',
        '{"ref":"ch_1","amount":12,"currency":"JPY","deep":{"a":[1,2,{"b":null}]}}',
        '{"ref":7,"amount":"0.5","currency":"EUR","memo":"\\u00e9\\n"}',
        "",
        '{"ref":"ch_2","amount":19.99,"currency":"USD"}',
    ]
    return "\n".join(lines).encode()


@cache
def originals() -> dict[str, tuple[bytes, ...]]:
    """Sound and half-sound files by their ending."""
    with tempfile.TemporaryDirectory() as folder:
        book = xlsxwriter.Workbook(Path(folder) / "a.xlsx")
        sheet = book.add_worksheet()
        for place, row in enumerate(ROWS):
            sheet.write_row(place, 0, row)
        sheet.write_number(3, 1, 19.99)
        book.close()
        with duckdb.connect() as database:
            database.execute(
                "CREATE TABLE t AS SELECT 'R' || i AS ref, i::DECIMAL(9,2) AS amount, 'USD' AS currency FROM range(1, 50) r(i)"
            )
            database.execute(f"COPY t TO '{folder}/a.parquet' (FORMAT parquet)")
        return {
            ".csv": (
                _delimited(",", "\n", "utf-8"),
                _delimited(";", "\r\n", "utf-8-sig"),
                _delimited("\t", "\r", "utf-8"),
                _delimited(",", "\n", "utf-16"),
                b"".join(b"R%d,%d.50,USD,plain\n" % (n, n) if n else b"ref,amount,currency,memo\n" for n in range(40)),
            ),
            ".jsonl": (_json_lines(), _json_lines().replace(b":", b" : ").replace(b"\n", b"\r\n")),
            ".xlsx": ((Path(folder) / "a.xlsx").read_bytes(),),
            ".parquet": ((Path(folder) / "a.parquet").read_bytes(),),
        }


TOKENS = [
    b'"',
    b'""',
    b",",
    b";",
    b"\n",
    b"\r",
    b"\r\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"{",
    b"}",
    b"[",
    b"\\u0000",
]
TOKENS += [
    b'":',
    b"\\",
    b"'",
    b"#N/A",
    b"1e5",
    b"NaN",
    b"9" * 400,
    b"\xe2\x80\x8b",
    b"\xc2\xa0",
    b"ref",
    b"amount",
    b" ",
    b"-",
    b".",
]


@st.composite
def broken(draw: st.DrawFn, ending: str) -> bytes:
    """A file after some damage: pieces cut out, doubled, moved, overwritten, put in."""
    data = draw(st.sampled_from(originals()[ending]))
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.integers(0, 60)))
        piece = data[start:stop]
        match draw(st.sampled_from(["cut", "double", "token", "bytes", "end", "swap"])):
            case "cut":
                data = data[:start] + data[stop:]
            case "double":
                data = data[:stop] + piece + data[stop:]
            case "token":
                data = data[:start] + draw(st.sampled_from(TOKENS)) + data[start:]
            case "bytes":
                data = data[:start] + draw(st.binary(max_size=8)) + data[stop:]
            case "end":
                data = data[:start]
            case _:
                data = data[:start] + piece[::-1] + data[stop:]
    return data


formats = st.builds(
    FileFormat,
    encoding=st.sampled_from([None, None, None, "utf-8", "cp1252", "utf-16", "shift_jis", "nonsense"]),
    delimiter=st.sampled_from([None, None, ",", ";", "\t"]),
    quote=st.sampled_from(['"', '"', "'", ""]),
    decimal=st.sampled_from([None, None, ".", ","]),
    thousands=st.sampled_from([None, None, "", " ", "'"]),
    preamble=st.sampled_from([None, None, None, 0, 1, 3]),
)


def judge(data: bytes, ending: str, file_format: FileFormat = UNDECLARED, **options: Any) -> None:
    """Reads a file and checks what must hold whatever is in it."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"in{ending}").write_bytes(data)
        made = InputSettings(source=f"in{ending}", item=COLUMNS, format=file_format, **options)
        with read(made, base_dir=Path(folder), operation="refund") as intake:
            counts = intake.counts
            items = list(intake.items())
            assert counts.rows == counts.items + counts.skipped + counts.refused
            assert counts.items == len(items)
            assert counts.skipped == len(intake.ignored)
            if counts.refused and not intake.ok:
                assert len(intake.problems)
            if intake.ok:
                assert items
                assert len({item.id for item in items}) == len(items)
                assert all(item.money is not None and item.money.minor > 0 for item in items)
                assert all(0 < len(item.id) <= 512 and item.id == item.id.strip() for item in items)
                total = sum(item.money.minor for item in items if item.money)
                assert total == sum(entry.total.minor for entry in intake.totals)
            else:
                try:
                    intake.raise_if_bad()
                except InputError as error:
                    str(error).encode("utf-8")
                else:
                    raise AssertionError("refused without a problem")
            for problem in intake.problems:
                f"{problem.column} {problem.value} {problem.message}".encode()


quick = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
short = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@quick
@given(broken(".csv"), formats, st.booleans(), st.sampled_from(["error", "skip"]))
def test_broken_delimited_files(data: bytes, file_format: FileFormat, skip: bool, on_duplicate: str) -> None:
    """Any damage, under any settings."""
    judge(data, ".csv", file_format, skip_bad_rows=skip, on_duplicate=on_duplicate)


@quick
@given(broken(".csv"))
def test_broken_delimited_files_without_settings(data: bytes) -> None:
    """Any damage, where everything has to be found out."""
    judge(data, ".csv", skip_bad_rows=True, on_duplicate="skip")


@quick
@given(broken(".jsonl"), st.booleans())
def test_broken_json_lines(data: bytes, skip: bool) -> None:
    """Any damage to JSON Lines."""
    judge(data, ".jsonl", skip_bad_rows=skip)


@short
@given(broken(".xlsx"))
def test_broken_workbooks(data: bytes) -> None:
    """Any damage to a workbook."""
    judge(data, ".xlsx", skip_bad_rows=True)


@short
@given(broken(".parquet"))
def test_broken_parquet_files(data: bytes) -> None:
    """Any damage to a Parquet file."""
    judge(data, ".parquet", skip_bad_rows=True)


@short
@given(st.binary(max_size=400), st.sampled_from([".csv", ".tsv", ".jsonl", ".xlsx", ".parquet"]))
def test_any_bytes(data: bytes, ending: str) -> None:
    """Bytes of no kind."""
    judge(data, ending, skip_bad_rows=True)
