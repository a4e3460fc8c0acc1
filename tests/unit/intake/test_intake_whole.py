"""What only the whole input shows: duplicates, totals, control totals, the seal, skipped rows, and a changing source."""

from __future__ import annotations

import hashlib
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from payonce.core.errors import InputError, UsageError
from payonce.intake import Expect, InputSettings, Intake, ItemColumns, read, source_digest
from tests.unit.intake.intakekit import amounts, codes, only_problem, read_file

HEADER = "ref,amount,currency,memo\n"
COLUMNS = ItemColumns(id="ref", amount="amount", currency="currency")


def written(tmp_path: Path, text: str) -> Path:
    """A CSV file with this text below the header."""
    path = tmp_path / "in.csv"
    path.write_bytes((HEADER + text).encode())
    return path


def test_equal_rows_may_be_skipped(tmp_path: Path) -> None:
    """Only rows that are the same in every respect; each is listed with the line it repeats."""
    text = "A1,1,USD,x\nA2,2,USD,x\nA1,1.00,usd,x\nA1,1,USD,x\nA3,5,USD,x\n"
    with read_file(written(tmp_path, text), on_duplicate="skip") as intake:
        assert intake.ok
        assert [(entry.line, entry.why) for entry in intake.ignored] == [
            (4, "the same as line 2 in every respect"),
            (5, "the same as line 2 in every respect"),
        ]
        assert [(item.id, item.line) for item in intake.items()] == [("A1", 2), ("A2", 3), ("A3", 6)]
        assert str(intake.totals[0].total) == "8.00 USD"
        assert intake.totals[0].items == 3
    with read_file(written(tmp_path, "A1,1,USD,x\nA2,2,USD,x\nA3,5,USD,x\n")) as plain:
        assert plain.seal == intake.seal


def test_rows_that_differ_under_one_id_are_never_skipped(tmp_path: Path) -> None:
    """A third row with other content casts doubt on the two equal ones."""
    text = "A1,1,USD,x\nA1,1,USD,x\nA1,1,USD,y\nA2,1,USD,x\n"
    with read_file(written(tmp_path, text), on_duplicate="skip", skip_bad_rows=True) as intake:
        assert codes(intake) == dict.fromkeys((2, 3, 4), "duplicate_id")
        assert list(amounts(intake)) == ["A2"]
        assert intake.counts.refused == 3
        assert intake.ok


def test_a_refused_row_counts_where_ids_are_compared(tmp_path: Path) -> None:
    """Of two rows with one id neither is taken, though one is refused for its amount already."""
    with read_file(written(tmp_path, "A1,1,USD,x\nA1,full,USD,x\nA2,1,USD,x\n"), skip_bad_rows=True) as intake:
        assert list(amounts(intake)) == ["A2"]
        assert {problem.line for problem in intake.problems if problem.code == "duplicate_id"} == {2, 3}


def test_bad_rows_are_skipped_only_when_asked(tmp_path: Path) -> None:
    """Without the flag one bad row refuses the input; with it the rest may be sealed."""
    path = written(tmp_path, "A1,1,USD,x\nA2,0,USD,x\n")
    with read_file(path) as intake:
        assert not intake.ok
        with pytest.raises(InputError) as raised:
            intake.raise_if_bad()
        assert raised.value.problems[0].line == 3
    with read_file(path, skip_bad_rows=True) as intake:
        intake.raise_if_bad()
        assert (intake.counts.items, intake.counts.refused) == (1, 1)
    with read_file(written(tmp_path, "A1,0,USD,x\n"), skip_bad_rows=True) as intake:
        assert "no_items" in intake.problem_codes
        assert not intake.ok


def test_totals_largest_and_smallest(tmp_path: Path) -> None:
    """Per currency, with the first item where several are equal."""
    with read_file(written(tmp_path, "A1,3,USD,\nA2,9,EUR,\nA3,1.5,USD,\nA4,3,USD,\nA5,100,JPY,\n")) as intake:
        usd = next(total for total in intake.totals if total.currency == "USD")
        assert [total.currency for total in intake.totals] == ["EUR", "JPY", "USD"]
        assert (usd.items, str(usd.total)) == (3, "7.50 USD")
        assert (usd.largest.id, usd.largest.line, usd.smallest.id) == ("A1", 2, "A3")


@pytest.mark.parametrize(
    ("expect", "found"),
    [
        (Expect(items=2, total={"USD": 350}), []),
        (Expect(items=3), ["expected_items"]),
        (Expect(total={"USD": 351}), ["expected_total"]),
        (Expect(total={"USD": 350, "EUR": 1}), ["expected_total"]),
        (Expect(items=1, total={"EUR": 350}), ["expected_items", "expected_total", "expected_total"]),
    ],
)
def test_control_totals(tmp_path: Path, expect: Expect, found: list[str]) -> None:
    """The stated number of items and totals must agree, and stated totals must cover every currency."""
    with read_file(written(tmp_path, "A1,1,USD,\nA2,2.5,USD,\n"), expect=expect) as intake:
        assert [problem.code for problem in intake.problems] == found
        assert intake.ok == (not found)


def test_the_seal_is_that_of_the_canonical_lines(tmp_path: Path) -> None:
    """Anyone can compute it again from the items in order."""
    with read_file(written(tmp_path, 'A1,1,USD,"q ""x"" \\ \n\t"\nB2,2.5,EUR,é\n')) as intake:
        lines = (
            '{"amount_minor":100,"currency":"USD","fields":{"memo":"q \\"x\\" \\\\ \\n\\t"},"id":"A1","target":"A1"}\n'
            '{"amount_minor":250,"currency":"EUR","fields":{"memo":"é"},"id":"B2","target":"B2"}\n'
        )
        assert intake.seal == hashlib.sha256(lines.encode()).hexdigest()


def test_the_digest_is_that_of_the_file(tmp_path: Path) -> None:
    """And can be had without reading the items."""
    path = written(tmp_path, "A1,1,USD,\n")
    wanted = hashlib.sha256(path.read_bytes()).hexdigest()
    with read_file(path) as intake:
        assert intake.source_digest == wanted
    settings = InputSettings(source="in.csv", item=COLUMNS)
    assert source_digest(settings, base_dir=tmp_path) == wanted
    path.unlink()
    assert source_digest(settings, base_dir=tmp_path) is None


def test_items_can_be_taken_again_and_left_half_way(tmp_path: Path) -> None:
    """Each iteration starts from the first item."""
    rows = "".join(f"A{number},1,USD,{'x' * 300}\n" for number in range(10_000))
    with read_file(written(tmp_path, rows)) as intake:
        started = intake.items()
        assert next(started).id == "A0"
        assert [item.id for item in intake.items()] == [f"A{number}" for number in range(10_000)]
        assert sum(len(batch) for batch, _ in intake.records()) == 10_000


def test_a_file_that_changes_between_two_readings_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decimal comma that shows up late needs a second reading; what is read then must be the same file."""
    rows = "".join(f"A{number};{number}\n" for number in range(1, 60_000))
    path = tmp_path / "in.csv"
    path.write_text(f"ref;amount\n{rows}B;1,5\n")
    from payonce.intake.reading import Reading

    run = Reading.run

    def changing(self: Reading) -> Intake:
        intake = run(self)
        path.write_text(f"ref;amount\n{rows}B;1,6\n")
        return intake

    monkeypatch.setattr(Reading, "run", changing)
    with read_file(path, id="ref", amount="amount", currency_value="EUR") as intake:
        assert "input_changed" in intake.problem_codes
        assert not intake.ok


def test_no_room_for_temporary_files_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is no fault of the input."""

    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("payonce.intake.spool.scratch_file", full)
    with pytest.raises(UsageError, match="No space left"):
        read(InputSettings(source="in.csv", item=COLUMNS), base_dir=tmp_path, operation="refund")


def test_room_that_ends_before_the_last_block_is_said(tmp_path: Path) -> None:
    """The items wait in a buffer until it is written: where that finds no room the reading says so, not the seal, and the
    temporary files are given back without another error. A limit on file sizes, for real."""
    path = written(tmp_path, "A1,1,USD,\nA2,1,USD,\n")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
    try:
        with pytest.raises(UsageError) as error:
            read_file(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert error.value.code == "no_temporary_space"


def test_many_problems_are_all_kept(tmp_path: Path) -> None:
    """More than fit into memory: the first ones at hand, all of them by iterating, counted by code."""
    rows = "".join(f"A{number},0,USD,\n" for number in range(5000))
    with read_file(written(tmp_path, rows)) as intake:
        assert len(intake.problems) == 5000
        assert len(intake.problems.first(20)) == 20
        assert [problem.line for problem in intake.problems] == list(range(2, 5002))
        assert intake.problem_codes == {"zero_amount": 5000}


def test_the_mapping_must_fit_the_operation(tmp_path: Path) -> None:
    """A refund without an amount or a currency column is refused before a row is read."""
    path = written(tmp_path, "A1,1,USD,\n")
    with read_file(path, id="ref") as intake:
        assert set(intake.problem_codes) == {"no_amount_column", "no_currency"}
    with read_file(path, id="ref", amount="amount", currency_value="XYZ") as intake:
        assert only_problem(intake).code == "unknown_currency"


def test_plain_rows_are_the_items(tmp_path: Path) -> None:
    """What a store takes quickly says the same as the items."""
    text = 'A1,1,USD,"q ""x"" é"\nA2,2,USD,\nA1,1,USD,"q ""x"" é"\n'
    with read_file(written(tmp_path, text), on_duplicate="skip") as intake:
        assert [row for batch in intake.rows() for row in batch] == [
            ("A1", "A1", 100, "USD", '{"memo":"q \\"x\\" é"}'),
            ("A2", "A2", 200, "USD", '{"memo":""}'),
        ]


def test_a_total_that_no_ledger_holds_is_refused(tmp_path: Path) -> None:
    """Each amount fits; their sum does not."""
    with read_file(written(tmp_path, "".join(f"A{n},{5 * 10**16},USD,\n" for n in range(2)))) as intake:
        assert "total_too_large" in intake.problem_codes


def test_text_inputs_load_no_heavy_library(tmp_path: Path) -> None:
    """Whoever reads a CSV file does not wait for DuckDB, a workbook reader or a database client."""
    written(tmp_path, "A1,1,USD,\n")
    code = (
        "import sys, pathlib; from payonce.intake import *; "
        "made = InputSettings('in.csv', ItemColumns('ref', amount='amount', currency='currency')); "
        "assert read(made, base_dir=pathlib.Path('.'), operation='refund').ok; "
        "sys.exit(bool({'duckdb', 'python_calamine', 'psycopg', 'asyncio', 'aiohttp'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_batch_files_settings_load_no_reader() -> None:
    """What only needs the settings of a batch file, as `payonce status` does, loads neither readers nor spool."""
    code = (
        "import sys, payonce.service.batchfile;"
        "sys.exit(bool({'payonce.intake.reading', 'payonce.intake.spool', 'payonce.intake.inputs'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
