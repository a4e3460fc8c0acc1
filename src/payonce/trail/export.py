"""The trail as a file that is verifiable offline: JSON Lines or Parquet, whole or of one batch, with the totals.

The first line (Parquet: the schema's metadata) holds the signed checkpoint and the totals, then comes one line for each
event, byte for byte as it was hashed, and for what was left out ``{"skip": level, "hash": ...}``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

import orjson

from payonce.core.errors import UsageError
from payonce.trail.checkpoint import trusted
from payonce.trail.faults import Fault
from payonce.trail.keys import VerifierKey
from payonce.trail.note import parse
from payonce.trail.pruned import Part, Rebuilt
from payonce.trail.totals import Totals

FORMAT: Final = "payonce-trail/1"
_ROWS: Final = 20_000
Head = dict[str, Any]
Parts = Callable[[], Iterable[Part]]


def totals_of(parts: Iterable[Part]) -> dict[str, Any]:
    """The totals of the events among some parts."""
    totals = Totals()
    for part in parts:
        if part.body is not None:
            totals.take(part.body)
    return totals.as_json()


def write_lines(file: IO[bytes], head: Head, parts: Iterable[Part]) -> int:
    """Writes JSON Lines; returns how many events."""
    file.write(orjson.dumps(head) + b"\n")
    events = 0
    for part in parts:
        if part.body is not None:
            events += 1
            file.write(part.body + b"\n")
        else:
            file.write(b'{"skip":%d,"hash":"%s"}\n' % (part.level, part.hash.hex().encode()))
    return events


def write_parquet(path: Path, head: Head, parts: Iterable[Part]) -> int:
    """Writes Parquet; returns how many events. Columns: seq, level, body, hash, and of the body what is often asked for."""
    pa, pq = _arrow()
    text = ("type", "batch", "item", "at", "amount", "currency", "billed", "reference", "code")
    fields = [("seq", pa.int64()), ("level", pa.int8()), ("body", pa.string()), ("hash", pa.binary())]
    schema = pa.schema(fields + [(name, pa.string()) for name in text], metadata={b"payonce": orjson.dumps(head)})
    events = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for rows in _chunks(parts):
            said = [orjson.loads(part.body) if part.body is not None else {} for part in rows]
            columns: dict[str, list[Any]] = {
                "seq": [part.seq for part in rows],
                "level": [part.level for part in rows],
                "body": [None if part.body is None else part.body.decode() for part in rows],
                "hash": [part.hash or None for part in rows],
                **{name: [body.get(name) for body in said] for name in text},
            }
            events += sum(part.body is not None for part in rows)
            writer.write_table(pa.table(columns, schema=schema))
    return events


def _chunks(parts: Iterable[Part]) -> Iterator[list[Part]]:
    rows: list[Part] = []
    for part in parts:
        rows.append(part)
        if len(rows) == _ROWS:
            yield rows
            rows = []
    if rows:
        yield rows


def read(path: Path) -> tuple[Head, Iterator[Part]]:
    """An export again. Raises UsageError ``bad_export`` where it is none."""
    if path.suffix.lower() == ".parquet":
        _, pq = _arrow()
        file = pq.ParquetFile(path)
        head = (file.schema_arrow.metadata or {}).get(b"payonce")
        return _head(head), _parquet_parts(file)
    lines = path.open("rb")
    return _head(lines.readline()), _line_parts(lines)


def _head(raw: bytes | None) -> Head:
    try:
        head = orjson.loads(raw or b"")
    except orjson.JSONDecodeError:
        head = None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise UsageError("this is no export of a trail", code="bad_export", hint="payonce trail export makes one")
    return head


def _line_parts(lines: IO[bytes]) -> Iterator[Part]:
    at = 0
    with lines:
        for line in lines:
            body = line.removesuffix(b"\n")
            if body.startswith(b'{"skip":'):
                said = orjson.loads(body)
                yield Part(at + 1, None, said["skip"], bytes.fromhex(said["hash"]))
                at += 1 << said["skip"]
            else:
                yield Part(at + 1, body)
                at += 1


def _parquet_parts(file: Any) -> Iterator[Part]:
    for rows in file.iter_batches(batch_size=_ROWS, columns=["seq", "level", "body", "hash"]):
        for row in rows.to_pylist():
            body = row["body"]
            yield Part(row["seq"], None if body is None else body.encode(), row["level"], row["hash"] or b"")


def check(path: Path, keys: Sequence[VerifierKey]) -> tuple[Head, list[Fault]]:
    """Verifies an export with public keys alone: the root it comes to, each event's own number, and the totals."""
    head, parts = read(path)
    signed = trusted(parse(head["checkpoint"]), keys)
    rebuilt, totals, faults = Rebuilt(), Totals(), []
    for part in parts:
        rebuilt.add(part)
        if part.body is not None:
            totals.take(part.body)
    size, root = signed.checkpoint.size, signed.checkpoint.root
    if not rebuilt.whole or rebuilt.size != size:
        text = f"the file covers {rebuilt.size} events in order, its checkpoint {size}"
        faults.append(Fault("removed", text, rebuilt.size + 1, size))
    elif rebuilt.root() != root:
        faults.append(
            Fault("rewritten", f"the file is not what its checkpoint over {size} events was signed over", 1, size)
        )
    if totals.as_json() != head.get("totals"):
        faults.append(Fault("unexplained", "the totals at the head of the file are not those of its events"))
    return head, faults


def _arrow() -> tuple[Any, Any]:
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError(
            "Parquet needs the package pyarrow",
            code="missing_package",
            hint="in the project's folder: pip install '.[parquet]'; or use .jsonl",
        ) from error
