"""Ids and targets: exact text, trimmed once; what a spreadsheet made of an id is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from payonce.intake.ids import fault_of, folded, may_be_mangled, suspects
from tests.unit.intake.intakekit import codes, only_problem, read_file

SOUND = [
    *[
        "ch_3N1abc",
        "00123456",
        "219E02BE",
        "12E4",
        "1001",
        "#1001",
        "2025-0001",
        "2025-03-01",
        "pi_1",
        "A",
        "RF-0001",
        "Mara",
        "may_1",
        "JUN",
        "12-AB",
        "1.2.3",
        "v1.0",
    ],
    *[
        "1/2",
        "9912140633506421",
        "é",
        "東京",
        "e+5",
        "1e5x",
        "total_1",
        "null_1",
        "-5x",
        "0",
        "00",
        "1-Marble",
        "Dec-ember",
        "10.0.0.1",
        "MAR-01",
        "set-01",
        "1.2.10",
    ],
    *["550e8400-e29b-41d4-a716-446655440000", "12/34/56", "0079,123", "12-34-56", "10.11.12", "12.345.678-9"],
    "079 123 456",
    "21 00000 00003 13947",
    *["total_1", "Totally", "Summer", "sums-1", "1.234", "2026.01", "MAR-01", "out-12", "Total-7"],
]
MANGLED = [
    *[
        "1.23457E+15",
        "1,23457E+15",
        "1.2e+05",
        "2.19E+26",
        "-1.5E-05",
        "1E+15",
        "1.2E5",
        "12345.0",
        "12345,00",
        "1.0",
        "#N/A",
        "#REF!",
        "#NAME?",
        "#DIV/0!",
    ],
    *[
        "#NV",
        "#BEZUG!",
        "###",
        "'00123",
        "=1+1",
        "1,234",
        "1,234,567",
        "1.234.567",
        "1'234",
        "12,34,567",
        "1-Mar",
        "Mar-01",
        "01-Mar-25",
        "3/1/2025",
    ],
    *["01.03.2025", "2025-03-01T00:00:00", "31/12/99", "01-août", "Dez-24"],
    '="00123"',
    "1 234 567",
    "1. Mrz",
    "1\u202f234",
    "Sept 2025",
    "2025-03-01 00:00:00",
    *["01-mar", "mar-24", "12-juin", "24-maj"],
]


@pytest.mark.parametrize("text", SOUND)
def test_sound_ids_pass(text: str) -> None:
    """What providers and shops really call things."""
    assert fault_of(text) is None


@pytest.mark.parametrize("text", MANGLED)
def test_mangled_ids_do_not(text: str) -> None:
    """Each shape that spreadsheets and data frames leave behind."""
    fault = fault_of(text)
    assert fault is not None
    assert fault.code == "mangled_id"
    assert list(suspects(["ch_3N1abcdefghijk", text])) == [1]


@pytest.mark.parametrize("text", ["nan", "NULL", "None", "N/A", "-", "undefined", "TRUE", "<NA>", "?", r"\N"])
def test_placeholders_are_missing_ids(text: str) -> None:
    """A word for nothing is no id."""
    fault = fault_of(text)
    assert fault is not None
    assert fault.code == "missing_id"


@pytest.mark.parametrize(
    "text",
    [
        *[
            "Total",
            "SUMME",
            "Grand total",
            "gesamtsumme",
            "Total:",
            "Summe :",
            "TOTAL EUR",
            "Zwischensumme:",
            "Samtals",
        ],
        *["Итого:", "合計", "Totaal", "Suma", "sous-total"],
    ],
)
def test_total_rows_are_no_items(text: str) -> None:
    """A row of totals at the end of an export would pay the sum of everything once more."""
    fault = fault_of(text)
    assert fault is not None
    assert fault.code == "total_row"


def test_every_fault_is_suspected() -> None:
    """The quick test over a column lets nothing through that the careful one refuses."""
    assert all(may_be_mangled(text) for text in MANGLED)
    for text in SOUND:
        assert not (fault_of(text) and not may_be_mangled(text))


def ids_file(tmp_path: Path, *ids: str) -> Path:
    """A file with these ids from line 2."""
    path = tmp_path / "in.csv"
    body = "".join(f'"{text}";1.00;USD\n' for text in ids)
    path.write_text(f"ref;amount;currency\n{body}", encoding="utf-8")
    return path


def test_outer_blanks_are_trimmed_and_said(tmp_path: Path) -> None:
    """Blanks, tabs and no-break spaces around an id go, those inside stay, and the count is told."""
    with read_file(ids_file(tmp_path, " A1", "A2\u00a0", "\u3000A3\t", "A 4", "A5")) as intake:
        assert [item.id for item in intake.items()] == ["A1", "A2", "A3", "A 4", "A5"]
        assert [(note.code, note.count, note.line) for note in intake.notes] == [("trimmed_id", 3, 2)]


def test_trimming_can_make_duplicates(tmp_path: Path) -> None:
    """What is the same without its blanks is the same id."""
    with read_file(ids_file(tmp_path, "A1", " A1")) as intake:
        assert codes(intake) == {3: "duplicate_id"}


def test_length_and_characters(tmp_path: Path) -> None:
    """512 characters of any script are an id; 513 are none, nor is a control character."""
    long = "é" * 512
    with read_file(
        ids_file(tmp_path, long, "x" * 513, "a\u0007b", "a\u0085b", "zero\u200bwidth", "\U0001f600", "\ue000")
    ) as intake:
        assert codes(intake) == {3: "id_too_long", 4: "bad_character", 5: "bad_character"}
        assert [item.id for item in intake.items()] == [long, "zero\u200bwidth", "\U0001f600", "\ue000"]
        assert "U+0007" in [problem.message for problem in intake.problems][1]


def test_ids_are_never_folded(tmp_path: Path) -> None:
    """Ids that differ only in case, blanks, zeros or invisible characters are two items, with a warning."""
    with read_file(ids_file(tmp_path, "ab1", "AB1", "0ab1", "a b1", "x1", "ａｂ1", "ab\u200b1")) as intake:
        assert intake.ok
        assert intake.counts.items == 7
        note = next(note for note in intake.notes if note.code == "near_ids")
        assert note.count == 5
        assert "'ab1' (line 2) and 'AB1' (line 3)" in note.message
    assert folded("ａＢ 1") == "ab1"


def test_long_numbers_that_all_end_in_zeros_are_refused(tmp_path: Path) -> None:
    """One number of 16 digits may end in a zero; all of them only after a spreadsheet."""
    with read_file(ids_file(tmp_path, "9912140633506420", "9912140633506530", "9912140633507640", "17")) as intake:
        problem = only_problem(intake)
        assert (problem.code, problem.line) == ("mangled_id", 2)
        assert not intake.ok
    with read_file(
        ids_file(tmp_path, "9912140633506420", "9912140633506530", "9912140633507640", "9912140633507641")
    ) as intake:
        assert intake.ok
        assert [(note.code, note.count) for note in intake.notes] == [("round_id", 3)]


def test_a_lost_character_anywhere_in_a_column_is_found(tmp_path: Path) -> None:
    """U+FFFD stands where a decoder gave up: two ids may have become one, and neither is the provider's."""
    with read_file(ids_file(tmp_path, "é-1", "caf\ufffd-2", "é-3")) as intake:
        assert codes(intake) == {3: "mangled_id"}


def test_ids_that_a_spreadsheet_would_take_for_numbers_are_said(tmp_path: Path) -> None:
    """They are kept exactly; who opens the file before the next batch should know."""
    with read_file(ids_file(tmp_path, "A1", "12E4", "1.234", "2026.01")) as intake:
        assert intake.ok and intake.counts.items == 4
        assert [(note.code, note.count) for note in intake.notes] == [("numberlike_id", 3)]
