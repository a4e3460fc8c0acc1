"""Where the events of a JSON Lines ledger are in its file: memory keeps some bytes for each, the file the bodies."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Final

from payonce.ledger.jsonl_file import JsonlFile
from payonce.ledger.trail_port import PLACE_MASK, PLACE_SHIFT

_NOWHERE: Final = -1


class JsonlEvents:
    """The events of a file by their numbers, from 1: where each begins, how long it is, what it is filed under."""

    def __init__(self, file: JsonlFile) -> None:
        self._file = file
        self._at, self._length, self._place = array("Q"), array("L"), array("q")

    def add(self, at: int, length: int) -> None:
        """One more event, which ``file_under`` files later."""
        self._at.append(at)
        self._length.append(length)

    def file_under(self, batch: int | None, ns: Iterable[int]) -> None:
        """The next events are filed under a batch's items, or the batch itself (0); None: about the ledger itself."""
        base = 0 if batch is None else batch << PLACE_SHIFT
        self._place.extend([_NOWHERE for _ in ns] if batch is None else [base | n for n in ns])

    def cut(self, size: int) -> None:
        """Forgets the events behind the first ``size``."""
        for known in (self._at, self._length, self._place):
            del known[size:]

    def has(self, size: int) -> bool:
        """Whether there are exactly so many events, each filed."""
        return len(self._at) == len(self._place) == size

    def body(self, seq: int) -> bytes | None:
        """The canonical bytes of an event, from the file."""
        if not 1 <= seq <= len(self._at):
            return None
        return self._file.read(self._at[seq - 1], self._length[seq - 1])

    def bodies(self) -> Iterator[tuple[int, bytes]]:
        """All events."""
        return ((seq, self.body(seq) or b"") for seq in range(1, len(self._at) + 1))

    def place_of(self, seq: int) -> tuple[int, int] | None:
        """Batch and item number that an event is filed under; None for one about the ledger."""
        place = self._place[seq - 1]
        return None if place == _NOWHERE else (place >> PLACE_SHIFT, place & PLACE_MASK)

    def seqs(self, number: int | None, n: int | None, *, after_seq: int = 0) -> Iterator[int]:
        """The numbers of the events of an item, of a batch with its items, or of the whole ledger."""
        places = self._place
        behind = range(max(0, after_seq) + 1, len(places) + 1)
        if number is None:
            return iter(behind)
        low = number << PLACE_SHIFT | (n or 0)
        high = low if n is not None else low | PLACE_MASK
        return (seq for seq in behind if low <= places[seq - 1] <= high)
