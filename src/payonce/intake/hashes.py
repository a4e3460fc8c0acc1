"""Finds values that occur more than once among millions, in flat memory: by their hashes, which are checked afterwards.

Hashes of equal texts are equal within a process, so what occurs once as a hash occurs once. What occurs more often is
only suspected: whoever asks compares the texts themselves.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Final

from payonce.intake.scratch import give_back, scratch_file

_BLOCK: Final = 1 << 16


class Hashes:
    """A growing column of hashes in an unlinked temporary file. ``part``: so many are held as a set at once (a million
    takes about 100 MB)."""

    def __init__(self, *, part: int = 1_000_000) -> None:
        self._file = scratch_file()
        self.count = 0
        self._part_size = part

    def add(self, hashes: Sequence[int]) -> None:
        """Appends some. Raises OSError where there is no room."""
        self._file.write(array("q", hashes).tobytes())
        self.count += len(hashes)

    def close(self) -> None:
        """Gives the disk space back."""
        give_back(self._file)

    def _blocks(self) -> Iterator[array[int]]:
        self._file.seek(0)
        while data := self._file.read(_BLOCK * 8):
            block: array[int] = array("q")
            block.frombytes(data)
            yield block
        self._file.seek(0, 2)

    def repeated(self, *, limit: int) -> tuple[frozenset[int], int]:
        """The hashes that occur more than once, at most ``limit`` of them, and how many there are in all."""
        parts = 1
        while self.count > parts * self._part_size and parts < 256:
            parts *= 2
        kept: set[int] = set()
        total = 0
        for part in range(parts):
            twice = self._twice(part, parts)
            total += len(twice)
            kept.update(list(twice)[: limit - len(kept)])
        return frozenset(kept), total

    def _part(self, part: int, parts: int) -> Iterator[array[int] | list[int]]:
        """The hashes whose lowest bits are ``part``, chosen by their lowest bytes in one go."""
        table = bytes(byte % parts == part for byte in range(256))
        lowest = 0 if array("q", [1]).tobytes()[0] else 7
        for block in self._blocks():
            yield block if parts == 1 else list(compress(block, block.tobytes()[lowest::8].translate(table)))

    def _twice(self, part: int, parts: int) -> set[int]:
        seen: set[int] = set()
        count = 0
        for block in self._part(part, parts):
            seen.update(block)
            count += len(block)
        if len(seen) == count:
            return set()
        once: set[int] = set()
        twice: set[int] = set()
        for block in self._part(part, parts):
            for value in block:
                (twice if value in once else once).add(value)
        return twice
