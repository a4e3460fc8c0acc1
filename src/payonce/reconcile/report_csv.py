"""Findings as CSV files, one for each class, safe to open in a spreadsheet.

A cell that a spreadsheet would run as a formula gets an apostrophe in front; amounts stay numbers.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from payonce.core.errors import UsageError
from payonce.reconcile.model import Kind
from payonce.reconcile.report import Report, discrepancy_json

COLUMNS: Final = (
    "class", "item", "target", "reference", "ledger_amount", "statement_amount", "currency", "statement_currency", "expected",
    "found", "count", "state", "statement_rows", "at", "finding", "finding_state", "note",
)  # fmt: skip
_DANGEROUS: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "＝", "＋", "－", "＠")
_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


def safe_cell(value: object) -> str:
    """A value as a cell that no spreadsheet takes for a formula. Plain numbers stay as they are."""
    if value is None:
        return ""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    if text.lstrip().startswith(_DANGEROUS) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV document with safe cells, CRLF as RFC 4180 says."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows([safe_cell(value) for value in row] for row in rows)
    return out.getvalue()


def write_csv(report: Report, folder: Path) -> list[Path]:
    """One file for each class that was found, named after it, in a folder that is made if need be; returns the files.

    A class without findings has no file, and an old one of that name is removed: a folder is one reconciliation. Raises
    UsageError where it cannot be written to.
    """
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for kind in Kind:
            path = folder / f"{kind.value}.csv"
            found = [discrepancy_json(report, d) for d in report.result.discrepancies if d.kind is kind]
            if not found:
                path.unlink(missing_ok=True)
                continue
            text = csv_text(COLUMNS, ([row[name] for name in COLUMNS] for row in found))
            path.write_text(text, encoding="utf-8", newline="")
            written.append(path)
    except OSError as error:
        raise UsageError(
            f"cannot write to {folder}: {error.strerror}", code="file_unwritable", hint="name another folder"
        ) from error
    return written
