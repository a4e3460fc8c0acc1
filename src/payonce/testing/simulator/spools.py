"""The spools of simulated processes, in the memory of the world: they outlive whoever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

from payonce.engine.spool import Spool, Spooled
from payonce.testing.simulator.loop import ProcessGone, ProcessLoop


class SpoolFolder:
    """The folder of spools, which outlives the processes: what each left, and whether it still lives."""

    def __init__(self) -> None:
        self.files: list[SpoolFile] = []


class SpoolFile:
    """One process's spool file, as much of a path as the engine asks for."""

    def __init__(self, folder: SpoolFolder, loop: ProcessLoop, name: str) -> None:
        self._folder = folder
        self.name = name
        self.loop = loop
        self.closed = False
        self.records: list[Spooled] = []

    def unlink(self, missing_ok: bool = False) -> None:
        """It is used up."""
        if self in self._folder.files:
            self._folder.files.remove(self)


class SimSpool(Spool):
    """The spool of one process, in the memory of the world."""

    def __init__(self, folder: SpoolFolder, loop: ProcessLoop, *, name: str, crossed: Callable[[str], None]) -> None:
        super().__init__((), name="simulated")
        self._folder = folder
        self._loop = loop
        self._own = SpoolFile(folder, loop, name)
        self._crossed = crossed

    def reserve(self, *, concurrency: int) -> None:
        """See Spool."""
        if self._loop.dead:
            raise ProcessGone
        self._own = SpoolFile(self._folder, self._loop, self._own.name)

    def write(self, record: Spooled) -> Path:
        """See Spool."""
        self._crossed("before_spool")
        if self._loop.dead:
            raise ProcessGone
        if self._own not in self._folder.files:
            self._own = SpoolFile(self._folder, self._loop, self._own.name)
            self._folder.files.append(self._own)
        self._own.records.append(record)
        self.written += 1
        self._crossed("after_spool")
        return cast(Path, self._own)

    def close(self) -> None:
        """See Spool."""
        self._own.closed = True

    def waiting(self) -> Iterator[tuple[Path, tuple[Spooled, ...], bool]]:
        """See Spool."""
        for file in tuple(self._folder.files):
            if file is not self._own and (file.closed or file.loop.dead):
                yield cast(Path, file), tuple(file.records), False
