"""Bytes of text files: which encoding they are in, and what is no table in text at all."""

from __future__ import annotations

import bz2
import lzma
from pathlib import Path

import pytest

from payonce.intake.encodings import text_encoding
from payonce.intake.tables import SettingFault, read_format
from tests.unit.intake.intakekit import amounts, only_problem, read_file

TEXT = "ref,amount,currency\nA1,10.00,USD\nÅ2,11.00,USD\n"
SOUND = {"A1": "10.00 USD", "Å2": "11.00 USD"}


@pytest.mark.parametrize(
    "encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "cp1252", "cp037", "utf-8-sig"]
)
def test_an_encoding_that_a_message_or_a_page_names_can_be_declared(tmp_path: Path, encoding: str) -> None:
    """Wide encodings without a byte order mark are declared by name, in a batch file as in code."""
    faults: list[SettingFault] = []
    declared = read_format({"encoding": encoding}, faults).encoding
    assert not faults
    (tmp_path / "in.csv").write_bytes(TEXT.encode(encoding))
    with read_file(tmp_path / "in.csv", encoding=declared) as intake:
        assert intake.ok and amounts(intake) == SOUND


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_wide_encoding_by_its_general_name_needs_the_mark_that_says_its_order(tmp_path: Path, encoding: str) -> None:
    """With the mark it is read; without it the message names what to declare, instead of guessing the order."""
    (tmp_path / "in.csv").write_bytes(TEXT.encode(encoding))
    with read_file(tmp_path / "in.csv", encoding=encoding) as intake:
        assert intake.ok and amounts(intake) == SOUND
    (tmp_path / "in.csv").write_bytes(TEXT.encode(f"{encoding}-le"))
    with read_file(tmp_path / "in.csv", encoding=encoding) as intake:
        assert f'"{encoding}-le"' in only_problem(intake).message


@pytest.mark.parametrize(
    "name", ["idna", "punycode", "unicode_escape", "hex", "base64", "zlib", "rot13", "klingon", "a\0b", 8]
)
def test_what_no_file_is_written_in_is_refused_as_an_encoding(name: object) -> None:
    """Codecs that rewrite text, or have no way to go on after a broken byte, are no encodings of files."""
    faults: list[SettingFault] = []
    assert text_encoding(name) is None
    assert read_format({"encoding": name}, faults).encoding is None
    assert [fault.key for fault in faults] == ["encoding"]


@pytest.mark.parametrize(("order", "other"), [("le", "be"), ("be", "le")])
def test_utf_16_without_a_mark_is_recognised_and_the_advice_works(tmp_path: Path, order: str, other: str) -> None:
    """The message names the one encoding with which the file can be read."""
    path = tmp_path / "in.csv"
    path.write_bytes(TEXT.encode(f"utf-16-{order}"))
    with read_file(path) as intake:
        message = only_problem(intake).message
    assert f"utf-16-{order}" in message and f"utf-16-{other}" not in message
    with read_file(path, encoding=f"utf-16-{order}") as intake:
        assert amounts(intake) == SOUND


def test_a_file_that_ends_in_zero_bytes_is_damaged_and_not_taken_for_utf_16(tmp_path: Path) -> None:
    """A file that a crash left full of zeros: another encoding would not help."""
    (tmp_path / "in.csv").write_bytes(TEXT.encode() + b"\0" * 4096)
    with read_file(tmp_path / "in.csv") as intake:
        problem = only_problem(intake)
    assert problem.code == "bad_encoding" and "damaged" in problem.message and "UTF-16" not in problem.message


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (bz2.compress(TEXT.encode()), "bzip2"),
        (lzma.compress(TEXT.encode()), "xz"),
        (b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(90), "7z"),
        (b"<!DOCTYPE html><html><table>", "HTML"),
        (b"\xef\xbb\xbf\r\n<html><body>", "HTML"),
        (b'<?xml version="1.0"?><rows/>', "XML"),
        (b"{\\rtf1 ref,amount}", "RTF"),
    ],
)  # fmt: skip
def test_what_is_no_table_in_text_is_called_by_its_name(tmp_path: Path, data: bytes, what: str) -> None:
    """An archive or a document under the name of a text file is named as what it is, with what to do."""
    (tmp_path / "in.csv").write_bytes(data)
    with read_file(tmp_path / "in.csv") as intake:
        problem = only_problem(intake)
    assert problem.code == "wrong_format" and what in problem.message


def test_a_mark_that_stands_twice_is_no_part_of_a_column_name(tmp_path: Path) -> None:
    """A tool that puts a byte order mark before a file that has one changes no column."""
    (tmp_path / "in.csv").write_bytes(b"\xef\xbb\xbf" * 2 + TEXT.encode())
    with read_file(tmp_path / "in.csv") as intake:
        assert intake.ok and amounts(intake) == SOUND


def test_a_mark_in_the_middle_of_joined_files_does_not_make_another_id(tmp_path: Path) -> None:
    """Files put behind each other: a zero-width no-break space before an id is left out like other blanks, with a note."""
    joined = "ref,amount,currency\nA1,10.00,USD\n\ufeffA1,10.00,USD\n"
    (tmp_path / "in.csv").write_text(joined, encoding="utf-8")
    with read_file(tmp_path / "in.csv") as intake:
        assert only_problem(intake).code == "duplicate_id"
        assert [note.code for note in intake.notes] == ["trimmed_id"]
