"""What the events say of workers: who joined as which number, when, and when it left or was declared dead."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import orjson

from payonce.core.events import from_iso, plain
from payonce.core.model import Actor
from payonce.ledger.rows import WorkerRow, actor_fields
from payonce.trail.said import Said

_NOBODY = Actor()


@dataclass(slots=True)
class _Joined:
    batch: int
    actor: bytes
    joined_us: int
    left_us: int | None = None


class WorkersStory:
    """All workers of a ledger, by fence."""

    def __init__(self) -> None:
        self._joined: dict[int, _Joined] = {}

    def take(self, number: int, said: Said) -> bool:
        """The next event about the batch ``number``; whether it is about a worker."""
        match said.type:
            case "worker_joined" if said.worker is not None:
                self._joined[said.worker] = _Joined(number, bytes(said.actor), from_iso(said.at))
            case "worker_left" if said.worker is not None:
                self._leave(said.worker, said)
            case "worker_dead" if said.dead is not None:
                self._leave(said.dead, said)
            case _:
                return False
        return True

    def _leave(self, fence: int, said: Said) -> None:
        if fence in self._joined:
            self._joined[fence].left_us = from_iso(said.at)

    def faults(self, rows: Iterable[WorkerRow]) -> Iterator[str]:
        """What of the stored workers the events do not explain, in words. When a lease ends is in no event."""
        gone = dict(self._joined)
        for row in rows:
            told = gone.pop(row.fence, None)
            if told is None:
                if not _is_placeholder(row):
                    yield f"worker {row.fence} is one that never joined"
                continue
            if row.batch != told.batch:
                yield f"worker {row.fence} is of another batch than the one it joined"
            if _sorted(actor_fields(row.actor)) != told.actor:
                yield f"worker {row.fence} is {row.actor.user} on {row.actor.host}, which is not who joined"
            if (row.joined_us, row.left_us) != (told.joined_us, told.left_us):
                yield f"worker {row.fence} joined or left at another time than its events say"
        for fence in gone:
            yield f"worker {fence} joined and is gone"


def _is_placeholder(row: WorkerRow) -> bool:
    """Whether this stands for a number that nobody ever had: a copied ledger keeps the numbers of the others."""
    return row.actor == _NOBODY and row.joined_us == 0 and row.left_us == 0


def _sorted(value: object) -> bytes:
    return orjson.dumps(plain(value), option=orjson.OPT_SORT_KEYS)
