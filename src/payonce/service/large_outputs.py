"""The files of large outputs, seen from the ledger: whether all are there, and taking those away that were erased."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from payonce.ledger.outputs import OUTPUT, outputs_of
from payonce.ledger.protocol import Ledger

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Found:
    """The large outputs that a ledger refers to: how many, how many bytes, and the items whose file is not as it was."""

    count: int
    size: int
    missing: tuple[str, ...]


def look(ledger: Ledger, url: str) -> Found:
    """Looks for every file and its size; what is in it is checked when it is read."""
    files, count, size = outputs_of(url), 0, 0
    missing: list[str] = []
    for batch in ledger.batches():
        for item, kept in _kept(ledger, batch.spec.id):
            if OUTPUT not in kept:
                continue
            count, size = count + 1, size + int(kept[OUTPUT]["bytes"])
            path = files.path(_digest(kept))
            if path is None or not path.is_file() or path.stat().st_size != kept[OUTPUT]["bytes"]:
                missing.append(f"{batch.spec.id}/{item}")
    return Found(count, size, tuple(missing))


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
