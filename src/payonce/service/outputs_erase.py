"""Taking away the files of erased outputs, unless another item's output is the same and stays."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from payonce.ledger.outputs import OUTPUT, outputs_of
from payonce.ledger.protocol import Ledger

_PAGE = 500


def digests(ledger: Ledger, batch: str, items: Collection[str]) -> frozenset[str]:
    """The digests of the large outputs of some items."""
    wanted = set(items)
    return frozenset(_found(kept) for item, kept in _kept(ledger, batch) if item in wanted and OUTPUT in kept)


def remove(ledger: Ledger, url: str, erased: Collection[str]) -> int:
    """Takes away the files of these digests that no output of the ledger refers to any more; returns how many."""
    if not erased:
        return 0
    files, left = outputs_of(url), set(erased)
    for batch in ledger.batches():
        left -= {_found(kept) for _, kept in _kept(ledger, batch.spec.id) if OUTPUT in kept}
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


def _found(kept: Mapping[str, Any]) -> str:
    return str(kept[OUTPUT]["sha256"])
