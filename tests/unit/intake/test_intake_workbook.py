"""What a worksheet does not show at first: errors and formulas without a value, hidden rows and sheets, numbers as names."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from payonce.intake.workbook_scan import scan
from tests.unit.intake.intakekit import amounts, codes, only_problem, read_file

HEADER = ("ref", "amount", "currency", "memo")
Build = Callable[[Any], None]


def book(tmp_path: Path, build: Build, *, computed: bool = True) -> Path:
    """A workbook that ``build`` fills; with ``computed`` False its formulas have no values, as when code wrote it."""
    path = tmp_path / "in.xlsx"
    made = xlsxwriter.Workbook(path)
    build(made)
    made.close()
    if not computed:
        with zipfile.ZipFile(path) as parts:
            data = {name: parts.read(name) for name in parts.namelist()}
        for name in [name for name in data if "worksheets/sheet" in name]:
            text = re.sub(rb"</f><v>[^<]*</v>", b"</f><v></v>", data[name])
            data[name] = re.sub(rb' t="(?:str|e)"><f>', b"><f>", text)
        with zipfile.ZipFile(path, "w") as parts:
            for name, content in data.items():
                parts.writestr(name, content)
    return path


def one_sheet(*rows: tuple[Any, ...]) -> Build:
    """One sheet of a header and these rows; texts that begin with = are formulas with the value #REF!, None is nothing."""

    def build(made: Any) -> None:
        sheet = made.add_worksheet()
        for line, row in enumerate((HEADER, *rows)):
            for place, cell in enumerate(row):
                if isinstance(cell, str) and cell.startswith("="):
                    sheet.write_formula(line, place, cell, None, "#REF!")
                elif cell is not None:
                    sheet.write(line, place, cell)

    return build


def test_a_row_of_errors_is_no_blank_row(tmp_path: Path) -> None:
    """A row whose cells all show #REF! was to be an item: it is refused with what the cells show, and not left out."""
    path = book(tmp_path, one_sheet(("A1", 5, "USD", "m"), ("=X1", "=X2", "=X3", "=X4"), ("A3", 5, "USD", "m")))
    with read_file(path, skip_bad_rows=True) as intake:
        assert amounts(intake) == {"A1": "5.00 USD", "A3": "5.00 USD"}
        assert intake.counts.refused == 1 and intake.counts.skipped == 0
        assert {(problem.line, problem.value) for problem in intake.problems} == {(3, "#REF!")}


def test_an_error_is_no_amount_that_was_left_out(tmp_path: Path) -> None:
    """Where an amount may be left out, one that shows an error was not left out."""
    path = book(tmp_path, one_sheet(("A1", None, None, "m"), ("A2", "=X", "USD", "m")))
    with read_file(path, operation="call") as intake:
        assert codes(intake) == {3: "bad_amount"}
        assert only_problem(intake).value == "#REF!" and "mend the formula" in only_problem(intake).message


def test_an_error_is_not_carried_as_nothing(tmp_path: Path) -> None:
    """A carried column goes into requests; an error in it would be sent as an empty text."""
    path = book(tmp_path, one_sheet(("A1", 5, "USD", "=X")))
    with read_file(path) as intake:
        problem = only_problem(intake)
        assert (problem.column, problem.value, problem.code) == ("memo", "#REF!", "uncarried_value")
    with read_file(path, id="ref", amount="amount", currency="currency", fields=()) as intake:
        assert intake.ok


def test_formulas_that_nobody_computed_are_named(tmp_path: Path) -> None:
    """A workbook written by code has formulas without values, also in the last rows: none is lost, each is shown."""
    rows = one_sheet(("A1", 5, "USD", "m"), ("A2", "=B2*2", "USD", "m"), ("=A2", "=B2", "=C2", "m"))
    with read_file(book(tmp_path, rows, computed=False), skip_bad_rows=True) as intake:
        assert amounts(intake) == {"A1": "5.00 USD"}
        assert intake.counts.rows == 3 and intake.counts.refused == 2
        shown = {(problem.line, problem.column): problem.value for problem in intake.problems}
        assert shown[3, "amount"] == "=B2*2" and shown[4, "ref"] == "=A2"


def test_a_computed_formula_is_a_value(tmp_path: Path) -> None:
    """Formulas with values are as good as typed cells; one whose value is an empty text is empty."""

    def build(made: Any) -> None:
        sheet = made.add_worksheet()
        sheet.write_row(0, 0, HEADER)
        sheet.write_formula(1, 0, '="A"&1', None, "A1")
        sheet.write_formula(1, 1, "=2+3", None, 5)
        sheet.write(1, 2, "USD")
        sheet.write_formula(1, 3, '=""', None, "")

    path = book(tmp_path, build)
    with zipfile.ZipFile(path) as parts:
        data = {name: parts.read(name) for name in parts.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    data[sheet] = data[sheet].replace(b'<c r="D2"><f>', b'<c r="D2" t="str"><f>')
    with zipfile.ZipFile(path, "w") as parts:
        for name, content in data.items():
            parts.writestr(name, content)
    with read_file(path) as intake:
        assert intake.ok and amounts(intake) == {"A1": "5.00 USD"}
        assert [item.fields["memo"] for item in intake.items()] == [""]


def hidden(made: Any) -> None:
    """Two of three rows hidden, as by a filter, and a hidden row without content."""
    sheet = made.add_worksheet()
    for line, row in enumerate((HEADER, ("A1", 5, "USD", ""), ("A2", 6, "EUR", ""), ("A3", 7, "EUR", ""))):
        sheet.write_row(line, 0, row)
    for line in (2, 3, 6):
        sheet.set_row(line, None, None, {"hidden": True})


def test_hidden_rows_are_not_paid_unasked(tmp_path: Path) -> None:
    """Who filtered a sheet may mean what is left, or not: the file says it, and until then nothing is taken."""
    path = book(tmp_path, hidden)
    with read_file(path, skip_bad_rows=True) as intake:
        problem = only_problem(intake)
        assert (problem.code, problem.line, problem.value) == ("hidden_rows", 3, "2") and not intake.ok
    with read_file(path, hidden_rows="take") as intake:
        assert intake.ok and intake.counts.items == 3
    with read_file(path, hidden_rows="skip") as intake:
        assert intake.ok and amounts(intake) == {"A1": "5.00 USD"}
        assert [(entry.line, entry.why) for entry in intake.ignored] == [(3, "hidden"), (4, "hidden")]


def test_a_hidden_sheet_is_taken_by_its_name_only(tmp_path: Path) -> None:
    """A sheet that nobody sees is not found by its columns."""

    def build(made: Any) -> None:
        made.add_worksheet("Cover").write(0, 0, "see the other sheet")
        sheet = made.add_worksheet("Old")
        sheet.write_row(0, 0, HEADER)
        sheet.write_row(1, 0, ("A1", 5, "USD", ""))
        sheet.hide()

    path = book(tmp_path, build)
    with read_file(path) as intake:
        problem = only_problem(intake)
        assert problem.code == "missing_sheet" and 'sheet = "Old"' in problem.message
    with read_file(path, sheet="Old") as intake:
        assert intake.ok and intake.counts.items == 1


def test_items_above_the_header_and_a_second_header_are_seen(tmp_path: Path) -> None:
    """As in text files: neither is an item lost nor a header paid for."""

    def build(made: Any) -> None:
        sheet = made.add_worksheet()
        for line, row in enumerate((("A1", 5, "USD", "m"), HEADER, ("z1", 5, "USD", "m"), HEADER)):
            sheet.write_row(line, 0, row)

    path = book(tmp_path, build)
    with read_file(path) as intake:
        assert codes(intake) == {1: "rows_above_header"}
    with read_file(path, preamble=1) as intake:
        assert codes(intake) == {4: "repeated_header"}


def test_values_are_shown_as_the_sheet_shows_them(tmp_path: Path) -> None:
    """A whole number has no fraction, in a message as in the name of a column."""
    path = book(tmp_path, one_sheet((123, 5, "USD", ""), ("A2", -5, "USD", ""), ("A3", 1e21, "USD", "")))
    with read_file(path) as intake:
        assert [problem.value for problem in intake.problems] == ["123", "-5", "1" + "0" * 21]

    def years(made: Any) -> None:
        sheet = made.add_worksheet()
        sheet.write_row(0, 0, ("ref", 2026))
        sheet.write_row(1, 0, ("A1", 5))

    with read_file(book(tmp_path, years), id="ref", amount="2026", currency_value="USD") as intake:
        assert amounts(intake) == {"A1": "5.00 USD"}


@pytest.mark.parametrize(
    ("data", "what"),
    [(b"ref,amount\nA1,5\n", ".csv"), (b"\xd0\xcf\x11\xe0\xa1\xb1", "password"), (b"<html><table>", "HTML")],
)
def test_what_is_called_a_workbook_and_is_none_is_named(tmp_path: Path, data: bytes, what: str) -> None:
    """The message says what the file is and what to do."""
    (tmp_path / "in.xlsx").write_bytes(data)
    with read_file(tmp_path / "in.xlsx") as intake:
        assert what in only_problem(intake).message


def test_cells_without_places_are_found_by_their_order(tmp_path: Path) -> None:
    """A writer may leave the places of cells and rows out, and prefix every name."""
    sheet = b"""<x:worksheet xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><x:sheetData>
      <x:row><x:c t="s"><x:v>0</x:v></x:c><x:c t="e"><x:v>#N/A</x:v></x:c></x:row>
      <x:row hidden="true"><x:c><x:f>A1</x:f></x:c><x:c r="AB2" t='e'><x:v>#REF!</x:v></x:c></x:row>
      </x:sheetData></x:worksheet>"""
    path = book(tmp_path, one_sheet())
    with zipfile.ZipFile(path) as parts:
        data = {name: parts.read(name) for name in parts.namelist()}
    data["xl/worksheets/sheet1.xml"] = sheet
    with zipfile.ZipFile(path, "w") as parts:
        for name, content in data.items():
            parts.writestr(name, content)
    found = scan(path.read_bytes(), "Sheet1")
    assert found.hidden == {1}
    assert {row: {place: fault.text for place, fault in cells.items()} for row, cells in found.faults.items()} == {
        0: {1: "#N/A"},
        1: {0: "=A1", 27: "#REF!"},
    }
