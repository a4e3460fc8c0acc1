"""What one transaction has read ahead, so that the next question needs no round trip. Forgotten at its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from payonce.ledger.rows import BatchRow, OpenRow, Tallies, WorkerRow


@dataclass(slots=True)
class Near:
    """A batch as it was read in this transaction. What is None has to be read again."""

    row: BatchRow
    tallies: Tallies
    workers: list[WorkerRow] | None


@dataclass(slots=True)
class Laid:
    """What was read along with some items: their open intents, and who holds their targets."""

    ns: frozenset[int] = frozenset()
    opens: dict[int, OpenRow] = field(default_factory=dict)
    targets: frozenset[str] = frozenset()
    holders: dict[str, int] = field(default_factory=dict)
