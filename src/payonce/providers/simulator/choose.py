"""Which fault a call meets: the item's script first, then the listed faults, then the probabilities.

Chance comes from a digest of the seed, the item and the number of its call, so the fate of an item's calls does not
depend on how the calls of different items happen to interleave.
"""

from __future__ import annotations

import hashlib

from payonce.providers.simulator.behaviours import Config
from payonce.providers.simulator.faults import Fault, Kind, When


class Chooser:
    """Picks faults for one configuration. Pure: the counts are told by the caller."""

    def __init__(self, config: Config, *, seed: int, started_us: int) -> None:
        self._config = config
        self._seed = seed
        self._started_us = started_us
        self._faults = config.faults + config.probability
        self.counts = bool(self._faults or config.script)

    def choose(self, *, subject: str, operation: str, read: bool, nth: int, total: int, now: int) -> Fault | None:
        """The fault of the `nth` call of a subject (an item's reference), the world's call `total`; None for none."""
        scripted = None if read else self._config.script.get(subject)
        if scripted is not None and nth <= len(scripted):
            return _unless_ok(scripted[nth - 1])
        elapsed = now - self._started_us
        for number, fault in enumerate(self._faults):
            when = fault.when
            if not _on(when, read=read) or not _matches(when, subject=subject, operation=operation):
                continue
            if not _counted(when, nth=nth, total=total) or not _timed(when, elapsed_us=elapsed):
                continue
            if when.probability is None or self.draw(f"{subject}|{nth}|{number}|{read}") < when.probability:
                return _unless_ok(fault)
        return None

    def draw(self, text: str) -> float:
        """A number from 0 to 1 that depends on the seed and the text alone."""
        digest = hashlib.blake2b(f"{self._seed}|{text}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2**64

    def latency_us(self, text: str) -> int:
        """The latency of one call in microseconds, inside the configured range."""
        low, high = self._config.latency_us
        return low if low == high else low + int(self.draw(text) * (high - low + 1))


def _unless_ok(fault: Fault) -> Fault | None:
    return None if fault.kind is Kind.OK else fault


def _on(when: When, *, read: bool) -> bool:
    return when.on == "all" or (when.on == "reads") == read


def _matches(when: When, *, subject: str, operation: str) -> bool:
    if when.items is not None and subject not in when.items:
        return False
    return when.operations is None or operation in when.operations


def _counted(when: When, *, nth: int, total: int) -> bool:
    return (when.first is None or total <= when.first) and (when.nth is None or nth == when.nth)


def _timed(when: When, *, elapsed_us: int) -> bool:
    start = when.start_us or 0
    return elapsed_us >= start and (when.length_us is None or elapsed_us < start + when.length_us)
