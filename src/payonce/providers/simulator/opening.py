"""Opens a world for real use: the wall clock, and the file that keeps its books where the configuration names one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from payonce.providers.simulator.behaviours import Config
from payonce.providers.simulator.journal import FileJournal
from payonce.providers.simulator.world import World


def wall_clock_us() -> int:
    """Microseconds since the epoch, whole."""
    return time.time_ns() // 1_000


def open_world(config: Config, *, clock: Callable[[], int] = wall_clock_us) -> World:
    """A world with the configuration's seed and, if it names a `state` file, the books kept there.

    Raises JournalError where the file is in use or damaged, OSError where it cannot be opened.
    """
    if config.state is None:
        return World(config, clock=clock, seed=config.seed)
    journal = FileJournal(Path(config.state))
    try:
        return World(config, clock=clock, seed=config.seed, journal=journal, history=journal.read())
    except BaseException:
        journal.close()
        raise
