"""The files of large outputs, seen from the ledger: whether all are there, and taking those away that were erased."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from payonce.ledger.outputs import OUTPUT, outputs_of
from payonce.ledger.protocol import Ledger

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Found:
    """The large outputs that a ledger refers to: how many, how many bytes, and the items whose file is not as it was;
    ``strays`` are files that it does not refer to."""

    count: int
    size: int
    missing: tuple[str, ...]
    strays: int = 0


@dataclass(frozen=True, slots=True)
class Strays:
    """Files that nothing refers to, with their bytes."""

    paths: tuple[Path, ...]
    size: int


def look(ledger: Ledger, url: str) -> Found:
    """Looks for every file and its size; what is in it is checked when it is read."""
    files, count, size = outputs_of(url), 0, 0
    missing: list[str] = []
    known: set[str] = set()
    for batch in ledger.batches():
        for item, kept in _kept(ledger, batch.spec.id):
            if OUTPUT not in kept:
                continue
            known.add(_digest(kept))
            count, size = count + 1, size + int(kept[OUTPUT]["bytes"])
            path = files.path(_digest(kept))
            if path is None or not path.is_file() or path.stat().st_size != kept[OUTPUT]["bytes"]:
                missing.append(f"{batch.spec.id}/{item}")
    return Found(count, size, tuple(missing), sum(digest not in known for digest, _ in files.files()))


def tidy(ledger: Ledger, url: str, *, remove: bool) -> Strays:
    """Finds the files that no output of the ledger refers to, which a crash left, and takes them away.

    Only while no process writes outputs: raises UsageError ``ledger_busy``. What such a file held is not lost: its
    item was never committed with it, and is decided as after any crash.
    """
    files = outputs_of(url)
    if not files.is_there:
        return Strays((), 0)
    with files.alone():
        known = {_digest(kept) for b in ledger.batches() for _, kept in _kept(ledger, b.spec.id) if OUTPUT in kept}
        strays = tuple(path for digest, path in files.files() if digest not in known)
        size = sum(path.stat().st_size for path in strays)
        for path in strays if remove else ():
            path.unlink(missing_ok=True)
    return Strays(strays, size)


def digests(ledger: Ledger, batch: str, items: Collection[str]) -> frozenset[str]:
    """The digests of the large outputs of some items."""
    wanted = set(items)
    return frozenset(_digest(kept) for item, kept in _kept(ledger, batch) if item in wanted and OUTPUT in kept)


def remove(ledger: Ledger, url: str, erased: Collection[str]) -> int:
    """Takes away the files of these digests that no output of the ledger refers to any more; returns how many."""
    if not erased:
        return 0
    files, left = outputs_of(url), set(erased)
    for batch in ledger.batches():
        left -= {_digest(kept) for _, kept in _kept(ledger, batch.spec.id) if OUTPUT in kept}
    for digest in left:
        files.remove(digest)
    return len(left)


def _kept(ledger: Ledger, batch: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    after = 0
    while True:
        page = ledger.outputs(batch, after_n=after, limit=_PAGE)
        yield from ((entry.item.id, entry.kept) for entry in page)
        if len(page) < _PAGE:
            return
        after = page[-1].item.n


def _digest(kept: Mapping[str, Any]) -> str:
    return str(kept[OUTPUT]["sha256"])
