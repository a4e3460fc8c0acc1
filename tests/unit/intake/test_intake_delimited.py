"""Delimited files as people really have them: read exactly, or refused with the line and the reason."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.unit.intake.intakekit import amounts, codes, only_problem, read_file

HEADER = "ref,amount,currency,memo\n"


def written(tmp_path: Path, data: str | bytes, name: str = "in.csv") -> Path:
    """A file with this content."""
    path = tmp_path / name
    path.write_bytes(data.encode("utf-8") if isinstance(data, str) else data)
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_delimiter_line_end_and_byte_order_mark_are_found(tmp_path: Path, delimiter: str, end: str, mark: str) -> None:
    """The usual delimiters, line ends and a mark at the start all give the same items."""
    text = mark + end.join(
        delimiter.join(row.split(",")) for row in ["ref,amount,currency", "A1,1.50,USD", "A2,2,EUR", ""]
    )
    with read_file(written(tmp_path, text)) as intake:
        assert amounts(intake) == {"A1": "1.50 USD", "A2": "2.00 EUR"}
        assert [item.line for item in intake.items()] == [2, 3]
        assert intake.columns == ("ref", "amount", "currency")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "cp1252", "shift_jis"])
def test_marked_and_declared_encodings(tmp_path: Path, encoding: str) -> None:
    """UTF-16 and UTF-32 with a mark are read as they are; other encodings where they are declared."""
    name = "Zoë" if encoding != "shift_jis" else "東京"
    marked = encoding in ("utf-16", "utf-32", "utf-8-sig")
    path = written(tmp_path, f"ref,amount,currency,memo\n{name},1.50,USD,x\n".encode(encoding))
    with read_file(
        path, **({} if marked else {"encoding": encoding, "id": "ref", "amount": "amount", "currency": "currency"})
    ) as intake:
        assert amounts(intake) == {name: "1.50 USD"}


def test_undecodable_bytes_are_named_with_line_offset_and_column(tmp_path: Path) -> None:
    """A Latin-1 letter in a UTF-8 file is refused in its row; the other rows are still checked."""
    data = HEADER.encode() + b"A1,1,USD,ok\nA2,1,USD,M\xfcller\nA3,0,USD,ok\n"
    with read_file(written(tmp_path, data)) as intake:
        assert codes(intake) == {3: "bad_encoding", 4: "zero_amount"}
        problem = next(iter(intake.problems))
        assert problem.column == "memo"
        assert problem.value == "M\\udcfcller"
        assert f"0xFC is not utf-8 (the first such byte is at offset {data.index(0xFC)})" in problem.message


def test_an_undecodable_header_is_named(tmp_path: Path) -> None:
    """The header cannot be matched where its bytes are not what the encoding says."""
    with read_file(written(tmp_path, b"ref,amount,currency,Gl\xe4ubiger\nA1,1,USD,x\n")) as intake:
        assert codes(intake)[1] == "bad_encoding"
        assert intake.counts.items == 0


def test_utf16_without_a_mark_is_refused_by_name(tmp_path: Path) -> None:
    """Every other byte is zero: the file says what it is, and the message says how to declare it."""
    with read_file(written(tmp_path, (HEADER + "A1,1,USD,x\n").encode("utf-16-le"))) as intake:
        assert "utf-16-le" in only_problem(intake).message


def test_broken_utf16_is_refused_with_its_offset(tmp_path: Path) -> None:
    """Half a surrogate pair in the middle ends the reading at its place."""
    data = (HEADER + "A1,1,USD,x\n").encode("utf-16") + b"\x00\xdc" + "A2,1,USD,x\n".encode("utf-16-le")
    with read_file(written(tmp_path, data)) as intake:
        assert only_problem(intake).code == "bad_encoding"
        assert "offset" in only_problem(intake).message


def test_an_encoding_that_contradicts_the_mark_is_refused(tmp_path: Path) -> None:
    """A file that says UTF-8 is not read as something else."""
    path = written(tmp_path, "\ufeff" + HEADER)
    with read_file(path, id="ref", amount="amount", currency="currency", encoding="cp1252") as intake:
        assert only_problem(intake).code == "bad_encoding"


def test_nul_characters_are_refused(tmp_path: Path) -> None:
    """A NUL is a sign of damage; the row and the column are named."""
    with read_file(written(tmp_path, HEADER + "A1,1,USD,x\0y\nA2,1,USD,x\n")) as intake:
        assert codes(intake) == {2: "bad_character"}
        assert amounts(intake) == {"A2": "1.00 USD"}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_file"),
        (b"\xef\xbb\xbf", "no_header"),
        (b"\n\n \n", "no_header"),
        (HEADER.encode(), "no_items"),
        (HEADER.encode() + b"\n\n,,,\n", "no_items"),
        (b"PK\x03\x04rest", "wrong_format"),
        (b"PAR1rest", "wrong_format"),
        (b"\x1f\x8brest", "wrong_format"),
        (b"%PDF-1.4", "wrong_format"),
        (b"ref;amount;currency\n", "no_items"),
        (b"ref,amount,currency,ref\nA,1,USD,B\n", "repeated_column"),
        (b"ref,amount,currency,id\nA,1,USD,B\n", "reserved_column"),
        (b"ref,amount,currency,key\nA,1,USD,B\n", "reserved_column"),
        (b"A1,1,USD\nA2,1,USD\n", "missing_column"),
    ],
)
def test_files_that_hold_no_items_say_why(tmp_path: Path, data: bytes, code: str) -> None:
    """Zero items is an error, with the reason in one word."""
    with read_file(written(tmp_path, data)) as intake:
        assert next(iter(intake.problems)).code == code
        assert intake.counts.items == 0
        assert not intake.ok


def test_a_file_that_is_not_there_or_no_file(tmp_path: Path) -> None:
    """A missing file and a folder are problems like others."""
    with read_file(tmp_path / "gone.csv") as intake:
        assert only_problem(intake).code == "input_missing"
    (tmp_path / "folder.csv").mkdir()
    with read_file(tmp_path / "folder.csv") as intake:
        assert only_problem(intake).code == "not_a_file"
    with read_file(written(tmp_path, "x", "in.docx")) as intake:
        assert only_problem(intake).code == "unknown_format"


def test_missing_columns_are_listed_together_with_the_nearest_names(tmp_path: Path) -> None:
    """All that is wrong with a header is in one report."""
    with read_file(written(tmp_path, "Ref,amont,currency,batch\nA,1,USD,x\n")) as intake:
        found = [(problem.code, problem.column) for problem in intake.problems]
        assert found == [("missing_column", "ref"), ("missing_column", "amount"), ("reserved_column", "batch")]
        messages = [problem.message for problem in intake.problems]
        assert "did you mean 'Ref'" in messages[0]
        assert "did you mean 'amont'" in messages[1]


def test_ragged_rows_are_refused_and_shift_nothing(tmp_path: Path) -> None:
    """Too many and too few fields, even where they would make up for each other."""
    text = HEADER + "A1,1,USD,x\nA2,1,USD\nA3,1,USD,x,y\nA4,1,USD,z\n"
    with read_file(written(tmp_path, text)) as intake:
        assert codes(intake) == {3: "ragged_row", 4: "ragged_row"}
        assert list(amounts(intake)) == ["A1", "A4"]
        assert "3 fields, fewer than the header's 4" in next(iter(intake.problems)).message


def test_blank_rows_are_ignored_and_counted(tmp_path: Path) -> None:
    """Empty lines, lines of blanks and rows of empty fields are rows that were skipped."""
    with read_file(written(tmp_path, HEADER + "\nA1,1,USD,x\n   \n,,,\n \t, ,,\n")) as intake:
        assert [entry.line for entry in intake.ignored] == [2, 4, 5, 6]
        assert (intake.counts.rows, intake.counts.items, intake.counts.skipped) == (5, 1, 4)
        assert intake.ok


def test_broken_quotes_are_refused_in_their_row(tmp_path: Path) -> None:
    """Text behind a closing quote is no field; the rows after it are read."""
    with read_file(written(tmp_path, HEADER + 'A1,1,USD,"x"y\nA2,1,USD,"z"\n')) as intake:
        assert codes(intake) == {2: "bad_quotes"}
        assert list(amounts(intake)) == ["A2"]


def test_an_open_quote_is_named_where_it_starts(tmp_path: Path) -> None:
    """The rest of the file could belong to the field, so the file as a whole is refused, skipping rows or not."""
    text = HEADER + 'A1,1,USD,x\nA2,1,USD,"never\nA3,1,USD,x\n'
    for skip in (False, True):
        with read_file(written(tmp_path, text), skip_bad_rows=skip) as intake:
            assert codes(intake) == {3: "open_quote"}
            assert not intake.ok


def test_the_csv_module_still_says_what_an_open_record_is() -> None:
    """The reader tells an open record from a broken one by this text."""
    with pytest.raises(csv.Error, match="unexpected end of data"):
        list(csv.reader(['a,"b'], strict=True))


def test_quoted_rows_over_the_borders_of_pieces(tmp_path: Path) -> None:
    """Records that go on from one piece of the file to the next keep their text and their lines."""
    rows, line, wanted = [], 2, []
    for number in range(4000):
        memo = f"{'x' * 150}\n{number}\n" if number % 3 else f"{'y' * 150} {number}"
        rows.append(f'N{number},1.00,USD,"{memo}"\n')
        wanted.append((f"N{number}", line, memo))
        line += 1 + memo.count("\n")
    with read_file(written(tmp_path, HEADER + "".join(rows))) as intake:
        assert [(item.id, item.line, item.fields["memo"]) for item in intake.items()] == wanted


def test_the_quick_and_the_careful_way_agree(tmp_path: Path) -> None:
    """One quote in a file sends it through the csv module; items and seal stay the same."""
    rows = "".join(f"N{number},{number}.50,USD,plain {number}\n" for number in range(1, 500))
    with read_file(written(tmp_path, HEADER + rows)) as quick:
        with read_file(
            written(tmp_path, HEADER.replace("memo", '"memo"') + rows.replace("plain 7\n", '"plain 7"\n'))
        ) as careful:
            assert quick.seal == careful.seal
            assert quick.source_digest != careful.source_digest


def test_unusual_quotes_and_none(tmp_path: Path) -> None:
    """Another quote character, and fields that are never quoted."""
    usual = {"id": "ref", "amount": "amount", "currency": "currency"}
    with read_file(written(tmp_path, HEADER + "A1,1,USD,'x, y'\n"), quote="'", **usual) as intake:
        assert next(intake.items()).fields == {"memo": "x, y"}
    with read_file(written(tmp_path, HEADER + 'A1,1,USD,5" pipe\n'), quote="", **usual) as intake:
        assert next(intake.items()).fields == {"memo": '5" pipe'}


def test_a_sep_line_and_a_declared_preamble(tmp_path: Path) -> None:
    """Excel's ``sep=`` line names the delimiter; declared lines above the header are left out."""
    usual = {"id": "ref", "amount": "amount", "currency": "currency"}
    with read_file(written(tmp_path, "sep=|\nref|amount|currency\nA1|1|USD\n"), **usual) as intake:
        assert amounts(intake) == {"A1": "1.00 USD"}
        assert intake.counts.skipped == 1
    text = "ref,amount,currency\nfrom,an,export\nref,amount,currency\nA1,1,USD\n"
    with read_file(written(tmp_path, text), preamble=2, **usual) as intake:
        assert amounts(intake) == {"A1": "1.00 USD"}
        assert [entry.line for entry in intake.ignored] == [1, 2]


def test_columns_without_a_name_are_left_out_and_said(tmp_path: Path) -> None:
    """The row numbers that data frames write in front are no column that anything could name."""
    with read_file(written(tmp_path, ",ref,amount,currency\n0,A1,1,USD\n1,A2,1,USD\n")) as intake:
        assert [dict(item.fields) for item in intake.items()] == [{}, {}]
        assert [note.code for note in intake.notes] == ["unnamed_column"]


def test_only_named_fields_are_carried(tmp_path: Path) -> None:
    """``fields`` limits what goes into the items, and must exist like the columns that templates need."""
    usual = {"id": "ref", "amount": "amount", "currency": "currency"}
    path = written(tmp_path, "ref,amount,currency,a,b\nA1,1,USD,x,y\n")
    with read_file(path, fields=("b",), **usual) as intake:
        assert next(intake.items()).fields == {"b": "y"}
    with read_file(path, needs=("c",), **usual) as intake:
        assert only_problem(intake).column == "c"


def test_a_very_long_field_is_read_and_an_endless_one_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of text is a field; what never ends is named by its line."""
    with read_file(written(tmp_path, HEADER + f'A1,1,USD,"{"x" * 1_000_000}"\n')) as intake:
        assert len(next(intake.items()).fields["memo"]) == 1_000_000
    monkeypatch.setattr("payonce.intake.delimited.LONGEST_FIELD", 300_000)
    monkeypatch.setattr("payonce.intake.rawtext.LONGEST_LINE", 400_000)
    with read_file(written(tmp_path, HEADER + f'A1,1,USD,"{"x" * 700_000}')) as intake:
        assert codes(intake) == {2: "line_too_long"}
    with read_file(written(tmp_path, HEADER + 'A1,1,USD,"' + "x\n" * 300_000)) as intake:
        assert codes(intake) == {2: "open_quote"}
