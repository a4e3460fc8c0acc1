"""Reports of totals in buckets: a list of days, each with a list of results, as OpenAI's and Anthropic's cost APIs give them.

Each result becomes a row with the scalars of its bucket beside its own. Numbers keep the text they are written in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from payonce.core.keys import digest
from payonce.reconcile.errors import refuse
from payonce.reconcile.table import Table

_LISTS: Final = ("results", "buckets")


def read_buckets(path: Path, wanted: tuple[str, ...]) -> Table | None:
    """The file as a table of results; None where it is no document of buckets, which is then read as any other.

    Raises StatementError where it is one page of several, or lacks a wanted column.
    """
    if path.suffix.lower() != ".json" or not path.is_file():
        return None
    raw = path.read_bytes()
    try:
        document = json.loads(raw, parse_float=str, parse_int=str, parse_constant=str)
    except ValueError:
        return None
    buckets = document.get("data") if isinstance(document, dict) else None
    if not isinstance(buckets, list) or not any(_results(bucket) is not None for bucket in buckets):
        return None
    if document.get("has_more") in (True, "true"):
        refuse(f"{path.name} is one page of several (has_more)", code="incomplete", hint="fetch all pages into one file", file=path.name)  # fmt: skip
    entries = [entry for bucket in buckets for entry in _rows(bucket)]
    columns = tuple(dict.fromkeys(name for entry in entries for name in entry))
    missing = [name for name in wanted if name not in columns]
    if missing:
        there = ", ".join(columns) or "none"
        refuse(f"{path.name}: column {missing[0]!r} missing; the columns are {there}", code="missing_column", hint="check [statement.coarse] against the file", file=path.name)  # fmt: skip
    rows = [[entry.get(name, "") for name in columns] for entry in entries]
    return Table(path.name, digest(raw), columns, rows, list(range(1, len(rows) + 1)))


def _results(bucket: Any) -> list[Any] | None:
    if not isinstance(bucket, Mapping):
        return None
    return next((bucket[name] for name in _LISTS if isinstance(bucket.get(name), list)), None)


def _rows(bucket: Any) -> Iterator[dict[str, str]]:
    results = _results(bucket)
    if results is None:
        return
    shared = {name: str(value) for name, value in bucket.items() if isinstance(value, str)}
    for result in results:
        yield {**shared, **dict(_flat(result, ""))}


def _flat(value: Any, prefix: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{prefix}.{name}" if prefix else str(name))
    elif value is not None and not isinstance(value, list):
        yield prefix, str(value)
