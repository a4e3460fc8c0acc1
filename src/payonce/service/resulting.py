"""What the calls of a batch returned, as a file: complete, in input order, one record an item.

Reads the ledger's own copy; asks no provider again. A file appears whole or not at all.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import orjson

from payonce.core.errors import UsageError
from payonce.ledger.protocol import Ledger, Output
from payonce.service.inspecting import find_batch
from payonce.service.report import item_json

_PAGE = 1000
_COLUMNS = (
    "item", "target", "amount", "currency", "state", "settlement", "reference", "billed", "billed_currency", "code",
    "message", "output",
)  # fmt: skip


def records(ledger: Ledger, batch: str) -> Iterator[dict[str, Any]]:
    """One record for every item in input order: its state and reason, and its ``output`` (null where there is none)."""
    find_batch(ledger, batch)
    after = 0
    while True:
        page = ledger.outputs(batch, after_n=after, limit=_PAGE)
        for entry in page:
            yield _record(entry)
        if len(page) < _PAGE:
            return
        after = page[-1].item.n


def write(ledger: Ledger, batch: str, path: Path, *, force: bool = False) -> dict[str, int]:
    """Writes the records to a .jsonl or .csv file and returns how many there are and how many have an output.

    The file is written beside its place, fsynced and renamed. Raises UsageError for another suffix, for a file that
    exists (unless ``force``) and for a place that cannot be written to.
    """
    writer = {".jsonl": _json_lines, ".csv": _comma_separated}.get(path.suffix.lower())
    if writer is None:
        raise UsageError(
            f"cannot write results as {path.suffix or 'a file without a suffix'}",
            code="unknown_format",
            hint="name the file .jsonl or .csv",
        )
    if path.exists() and not force:
        raise UsageError(f"{path} exists", code="file_exists", hint="choose another name, or --force")
    counts = {"items": 0, "with_output": 0}
    try:
        _whole(path, lambda file: writer(file, _counted(records(ledger, batch), counts)))
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", code="file_unwritable", hint="check the folder and the disk"
        ) from error
    return counts


def _record(entry: Output) -> dict[str, Any]:
    record = item_json(entry.item)
    record["output"] = None if entry.output is None else orjson.Fragment(entry.output)
    return record


def _counted(found: Iterator[dict[str, Any]], counts: dict[str, int]) -> Iterator[dict[str, Any]]:
    for record in found:
        counts["items"] += 1
        counts["with_output"] += record["output"] is not None
        yield record


def _json_lines(file: IO[bytes], found: Iterator[Mapping[str, Any]]) -> None:
    for record in found:
        file.write(orjson.dumps(record) + b"\n")


def _comma_separated(file: IO[bytes], found: Iterator[Mapping[str, Any]]) -> None:
    import io

    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    rows = csv.writer(text)
    rows.writerow(_COLUMNS)
    for record in found:
        rows.writerow([_cell(record[name]) for name in _COLUMNS])
    text.detach()


def _cell(value: Any) -> str:
    """A value as a cell. An output that is a text stands as it is, any other as JSON."""
    if isinstance(value, orjson.Fragment):
        parsed = orjson.loads(orjson.dumps(value))
        return parsed if isinstance(parsed, str) else orjson.dumps(parsed).decode()
    return "" if value is None else str(value)


def _whole(path: Path, fill: Any) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            fill(file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
