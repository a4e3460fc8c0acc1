"""Which reader an input needs: by the ending of its name, or a database for a query. Heavy libraries load only here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from payonce.intake.block import Block
from payonce.intake.report import Fatal, Report
from payonce.intake.settings import InputSettings, Query

_TEXT = (".csv", ".tsv", ".tab", ".txt")
_JSON = (".jsonl", ".ndjson")
_WORKBOOK = (".xlsx", ".xlsm")
_PARQUET = (".parquet", ".pq")
_UNPACK = "unpack the file first"
_ADVICE = {
    ".xls": "open it in a spreadsheet and save it as .xlsx or CSV",
    ".xlsb": "open it in a spreadsheet and save it as .xlsx or CSV",
    ".ods": "open it in a spreadsheet and save it as .xlsx or CSV",
    ".json": "use .jsonl, with one object a line (jq -c '.[]' makes that of a list)",
    **dict.fromkeys((".gz", ".zip", ".bz2", ".xz", ".zst", ".7z"), _UNPACK),
}


class Source(Protocol):
    """One reading of an input. ``columns`` and ``digest`` are known once all blocks were taken."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns found, in the input's order."""
        ...

    @property
    def digest(self) -> str:
        """The SHA-256 of the bytes read, in hex."""
        ...

    def blocks(self) -> Iterator[Block]:
        """All sound rows; the others are reported. Raises Fatal where the input as a whole cannot be used."""
        ...


def open_source(settings: InputSettings, report: Report, *, base_dir: Path) -> Source:
    """The reader for an input. Raises Fatal where there is none for its kind, or the file cannot be opened."""
    source = settings.source
    if isinstance(source, Query):
        from payonce.intake.query import QueryRows

        return QueryRows(source, settings, report=report, base_dir=base_dir)
    path = base_dir / source
    ending = path.suffix.lower()
    if ending in _TEXT:
        from payonce.intake.delimited import Delimited

        return Delimited(path, settings, report=report)
    if ending in _JSON:
        from payonce.intake.jsonlines import JsonLines

        return JsonLines(path, settings, report=report)
    if ending in _WORKBOOK:
        from payonce.intake.workbook import Workbook

        return Workbook(path, settings, report=report)
    if ending in _PARQUET:
        from payonce.intake.parquet import Parquet

        return Parquet(path, settings, report=report)
    advice = _ADVICE.get(ending, "use .csv, .tsv, .jsonl, .xlsx or .parquet")
    raise Fatal(report.make("unknown_format", f"{path.name}: the ending {ending!r} is not known; {advice}"))
