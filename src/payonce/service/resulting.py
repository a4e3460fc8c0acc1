"""What the calls of a batch returned: complete, in input order, one record an item.

Reads the ledger's own copy and the files beside it; asks no provider again. Only what is committed is there to be read,
so no record can be of something that a crash would take back.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from payonce.core.errors import ConfigError, UsageError
from payonce.core.states import ItemState
from payonce.ledger.outputs import OUTPUT, OutputFiles, outputs_of
from payonce.ledger.protocol import Ledger, Output
from payonce.providers import answers_values as values
from payonce.providers.answers_paths import Path as Expression
from payonce.providers.answers_paths import PathError
from payonce.service import results_files
from payonce.service.inspecting import find_batch
from payonce.service.report import item_json

# Outputs may be a quarter of a megabyte each before they go to files.
_PAGE: Final = 200
NO_OUTPUT: Final = "no_output"
# Whether a batch was to keep answers is not in the ledger, so the message says both.
_NOT_KEPT: Final = "executed; no answer of it is kept: the batch keeps none, or it was lost and could not be read again"


class Reader:
    """Makes records of one ledger's items. ``select`` is a JMESPath expression into each output.

    Raises UsageError ``bad_select`` for an expression that is none.
    """

    def __init__(self, url: str, *, select: str | None = None) -> None:
        self._files: OutputFiles = outputs_of(url)
        self._select: Expression | None = None
        if select is not None:
            try:
                self._select = Expression(select, place="--select")
            except ConfigError as error:
                raise UsageError(error.message, code="bad_select", hint=error.hint) from None

    def record(self, entry: Output) -> dict[str, Any]:
        """One item: its state and reason, its ``output`` (null where there is none) and what was kept of the answer.

        Raises LedgerError ``output_missing`` where the file of a large output is gone, UsageError ``bad_select``
        where the expression does not fit the output.
        """
        record = item_json(entry.item)
        data = entry.output if entry.output is not None else self._files.read(entry.kept)
        if data is None and entry.item.state is ItemState.COMMITTED and record["code"] is None:
            record |= {"code": NO_OUTPUT, "message": _NOT_KEPT}
        record["output"] = None if data is None else self._part(data, entry)
        record["output_sha256"] = dict(entry.kept.get(OUTPUT) or {}).get("sha256")
        record["kept"] = {name: value for name, value in entry.kept.items() if not name.startswith("$")}
        record["cost"] = entry.kept.get("$cost")
        return record

    def _part(self, data: bytes, entry: Output) -> Any:
        if self._select is None:
            return orjson.Fragment(data)
        try:
            return orjson.Fragment(orjson.dumps(values.jsonable(self._select.find(values.parse(data)))))
        except (PathError, ValueError, TypeError) as error:
            raise UsageError(
                f"item {entry.item.id}: --select does not fit its output: {error}",
                code="bad_select",
                hint="payonce results without --select shows the outputs",
            ) from error


def records(ledger: Ledger, batch: str, reader: Reader) -> Iterator[dict[str, Any]]:
    """One record for every item in input order."""
    find_batch(ledger, batch)
    after = 0
    while True:
        page = ledger.outputs(batch, after_n=after, limit=_PAGE)
        for entry in page:
            yield reader.record(entry)
        if len(page) < _PAGE:
            return
        after = page[-1].item.n


def one(ledger: Ledger, batch: str, n: int, reader: Reader) -> dict[str, Any] | None:
    """The record of the item at a place in the input."""
    page = ledger.outputs(batch, after_n=n - 1, limit=1)
    return reader.record(page[0]) if page and page[0].item.n == n else None


def write(ledger: Ledger, batch: str, path: Path, reader: Reader, *, force: bool = False) -> dict[str, int]:
    """Writes the records to a .jsonl, .csv or .parquet file; returns how many there are and how many have an output.

    The file is written beside its place, fsynced and renamed: it appears complete or not at all. Raises UsageError for
    another suffix, for a file that exists (unless ``force``) and for a place that cannot be written to.
    """
    writer = results_files.WRITERS.get(path.suffix.lower())
    if writer is None:
        raise UsageError(
            f"cannot write results as {path.suffix or 'a file without a suffix'}",
            code="unknown_format",
            hint="name the file .jsonl, .csv or .parquet",
        )
    if path.exists() and not force:
        raise UsageError(f"{path} exists", code="file_exists", hint="choose another name, or --force")
    counts = {"items": 0, "with_output": 0}
    try:
        results_files.whole(path, lambda part: writer(part, _counted(records(ledger, batch, reader), counts)))
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", code="file_unwritable", hint="check the folder and the disk"
        ) from error
    return counts


def _counted(found: Iterator[dict[str, Any]], counts: dict[str, int]) -> Iterator[dict[str, Any]]:
    for record in found:
        counts["items"] += 1
        counts["with_output"] += record["output"] is not None
        yield record
