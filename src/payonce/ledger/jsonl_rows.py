"""Between the rows of a ledger and the values in a line of JSON: only what changed of a row is written down.

Bytes are text where they are UTF-8, else a list with their base64, so that a person can read the file.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final, TypeVar

from payonce.core.model import Actor, Request
from payonce.core.states import BatchState, ItemState, Settlement
from payonce.ledger.rows import (
    BatchRow,
    FindingRow,
    ItemRow,
    OpenRow,
    OutputRow,
    PayloadRow,
    Tallies,
    WorkerRow,
    actor_fields,
    copy_of,
)

Row = TypeVar("Row", BatchRow, ItemRow, OpenRow)
Changed = TypeVar("Changed", BatchRow, ItemRow)
_NAMES: Final = {kind: tuple(f.name for f in fields(kind)) for kind in (BatchRow, ItemRow, OpenRow)}
_ENUMS: Final[Mapping[type, Mapping[str, Any]]] = {
    BatchRow: {"state": BatchState},
    ItemRow: {"state": ItemState, "settlement": Settlement},
}

_NO_OPEN: Final = OpenRow(0, None, 0, None, b"", 0, 0, 0, 0, None, 0, None, None, 0, 0, 0, None, None)


def changes(row: Row, before: Row | None) -> dict[str, Any]:
    """The columns of a row that differ from what is stored; all of them where nothing is."""
    found: dict[str, Any] = {}
    for name in _NAMES[type(row)]:
        value = getattr(row, name)
        if before is None or value != getattr(before, name):
            found[name] = _plain(value)
    return found


def changed(row: Changed, said: Mapping[str, Any]) -> Changed:
    """The row with the columns that were written down. Changes the row that it is given."""
    for name, value in said.items():
        setattr(row, name, value)
    for name, kind in _ENUMS[type(row)].items():
        if name in said:
            setattr(row, name, kind(said[name]))
    return row


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return as_request(value) if isinstance(value, Request) else value


def to_batch(said: Mapping[str, Any]) -> BatchRow:
    """A batch from all of its columns."""
    return BatchRow(**{**said, "state": BatchState(said["state"])})


def as_open(row: OpenRow) -> dict[str, Any]:
    """A new open intent, without the columns that nothing is in yet."""
    return {"n": row.n, **changes(row, _NO_OPEN)}


def to_open(said: dict[str, Any]) -> OpenRow:
    """The inverse of ``as_open``."""
    row = copy_of(_NO_OPEN)
    for name, value in said.items():
        setattr(row, name, value)
    row.digest = bytes.fromhex(said["digest"])
    if row.request is not None:
        row.request = to_request(said["request"])
    return row


def as_request(request: Request) -> list[Any]:
    """Method, path, headers and body."""
    return [request.method, request.path, [list(pair) for pair in request.headers], text_of(request.body)]


def to_request(said: list[Any]) -> Request:
    """The inverse of ``as_request``."""
    method, path, headers, body = said
    return Request(method, path, bytes_of(body) or b"", tuple((name, value) for name, value in headers))


def as_worker(row: WorkerRow) -> dict[str, Any]:
    """A worker."""
    return {**asdict(row), "actor": actor_fields(row.actor)}


def to_worker(said: Mapping[str, Any]) -> WorkerRow:
    """The inverse of ``as_worker``."""
    return WorkerRow(**{**said, "actor": Actor(**said["actor"])})


def as_tallies(tallies: Tallies) -> list[list[Any]]:
    """State, currency, items and minor units."""
    return [[state.value, currency, *tally] for (state, currency), tally in tallies.items()]


def to_tallies(said: list[list[Any]]) -> Tallies:
    """The inverse of ``as_tallies``."""
    return {(ItemState(state), currency): [items, minor] for state, currency, items, minor in said}


def as_output(row: OutputRow) -> list[Any]:
    """What a call returned."""
    return [row.n, text_of(row.output), row.kept]


def to_output(said: list[Any]) -> OutputRow:
    """The inverse of ``as_output``."""
    n, output, kept = said
    return OutputRow(n, bytes_of(output), kept)


def as_finding(row: FindingRow) -> list[Any]:
    """A discrepancy."""
    return [row.n, row.item, row.kind, row.data, row.opened_us]


def to_finding(said: list[Any], number: int) -> FindingRow:
    """The inverse of ``as_finding``."""
    return FindingRow(number, *said)


def as_payload(row: PayloadRow) -> list[Any]:
    """A kept payload."""
    return [row.seq, row.kind, row.batch, row.n, row.digest.hex(), text_of(row.body)]


def to_payload(said: list[Any]) -> PayloadRow:
    """The inverse of ``as_payload``."""
    seq, kind, batch, n, digest, body = said
    return PayloadRow(seq, kind, batch, n, bytes.fromhex(digest), bytes_of(body) or b"")


def text_of(data: bytes | None) -> Any:
    """Bytes in JSON."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return [base64.b64encode(data).decode()]


def bytes_of(said: Any) -> bytes | None:
    """The inverse of ``text_of``."""
    if said is None:
        return None
    return said.encode() if isinstance(said, str) else base64.b64decode(said[0])
