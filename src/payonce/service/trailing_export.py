"""Exporting a trail, whole or of one batch, into a file that anybody verifies with the public key alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from payonce.core.errors import UsageError
from payonce.ledger.trail_port import PLACE_SHIFT, TrailReads
from payonce.service.trailing import signing_key, trail
from payonce.trail import export
from payonce.trail.checkpoint import Checkpoint, origin_of, sign
from payonce.trail.keys import load_public
from payonce.trail.pruned import Part, Rebuilt, prune
from payonce.trail.tree import TrailHashes, Tree

SUFFIXES = (".jsonl", ".parquet")


@dataclass(frozen=True, slots=True)
class Order:
    """What to export: one batch or everything, to which file, signed with which key, over an existing file or not."""

    batch: str | None
    out: Path
    key: str | None
    force: bool = False


def write(url: str, order: Order) -> dict[str, Any]:
    """Writes the export, whole or not at all, and says what is in it. The ledger may be in use meanwhile.

    Raises UsageError for another suffix, a file that exists, an unknown batch, and where the ledger's hashes do not lead
    to its head: then it was changed, and nothing is signed.
    """
    if order.out.suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"cannot export to {order.out.name}", code="unknown_format", hint="name the file .jsonl or .parquet"
        )
    if order.out.exists() and not order.force:
        raise UsageError(f"{order.out} exists", code="file_exists", hint="choose another name, or --force")
    key = signing_key(url, order.key)
    with trail(url) as reads, reads.snapshot():
        ledger, head = reads.ledger_id(), reads.head()
        parts = _parts(reads, head.size, _number(reads, order.batch))
        _refuse_changed(parts(), head.root())
        text = {
            "format": export.FORMAT,
            "ledger": ledger,
            "batch": order.batch,
            "checkpoint": str(sign(Checkpoint(origin_of(ledger), head.size, head.root()), [key])),
            "totals": export.totals_of(parts()),
        }
        events = _write(order.out, text, parts)
    return {"file": str(order.out), "batch": order.batch, "events": events, "of": head.size, "totals": text["totals"]}


def check(path: Path, key: str) -> dict[str, Any]:
    """Verifies an export with public keys alone."""
    head, faults = export.check(path, load_public(key))
    return {
        "ok": not faults,
        "ledger": head.get("ledger"),
        "batch": head.get("batch"),
        "totals": head.get("totals"),
        "faults": [fault.as_json() for fault in faults],
    }


def _number(reads: TrailReads, batch: str | None) -> int | None:
    if batch is None:
        return None
    for row in reads.batches():
        if row.id == batch:
            return row.number
    raise UsageError(f"there is no batch {batch!r}", code="no_such_batch", hint="payonce status lists the batches")


def _parts(reads: TrailReads, size: int, number: int | None) -> Callable[[], Iterator[Part]]:
    """The parts again and again: they are read once for the root, once for the totals and once for the file."""

    def events() -> Iterator[tuple[int, bytes]]:
        if number is None:
            yield from reads.bodies(1, size)
            return
        for seq, place, body, _ in reads.filed(1, size):
            if place is not None and place >> PLACE_SHIFT == number:
                yield seq, body

    return lambda: prune(Tree(TrailHashes(reads)), events(), size=size)


def _refuse_changed(parts: Iterator[Part], root: bytes) -> None:
    rebuilt = Rebuilt()
    for part in parts:
        rebuilt.add(part)
    if not rebuilt.whole or rebuilt.root() != root:
        raise UsageError(
            "the events of this ledger do not lead to its head: it was changed, and nothing is signed",
            code="trail_changed",
            hint="payonce trail verify names what was changed",
        )


def _write(out: Path, head: dict[str, Any], parts: Callable[[], Iterator[Part]]) -> int:
    beside = out.with_name(f".{out.name}.{uuid4().hex[:8]}")
    try:
        if out.suffix.lower() == ".parquet":
            events = export.write_parquet(beside, head, parts())
        else:
            with beside.open("wb") as file:
                events = _lines(file, head, parts)
        beside.replace(out)
    except OSError as error:
        raise UsageError(
            f"cannot write {out}: {error.strerror}", code="file_unwritable", hint="check the folder and the disk"
        ) from error
    finally:
        beside.unlink(missing_ok=True)
    return events


def _lines(file: IO[bytes], head: dict[str, Any], parts: Callable[[], Iterator[Part]]) -> int:
    events = export.write_lines(file, head, parts())
    file.flush()
    os.fsync(file.fileno())
    return events
