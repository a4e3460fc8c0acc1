"""Small batches for tests of one store."""

from __future__ import annotations

from payonce.core.commands import BatchCommand, Change, Control, Intend
from payonce.core.model import SECOND_US, Actor, BatchSpec, NewItem, Request, Worker
from payonce.core.money import Money
from payonce.core.states import ItemEvent
from payonce.ledger.actors import this_actor, wall_clock
from payonce.ledger.protocol import Ledger

OPS = Actor(user="ops", host="desk", pid=1)
BATCH = "refunds"


def begin(ledger: Ledger, items: int, *, batch: str = BATCH, lease_s: int = 3600) -> Worker:
    """A sealed and started batch of items over 10.00 USD, with a worker of this process."""
    new = (NewItem(f"item-{n}", Money("10.00", "USD")) for n in range(1, items + 1))
    ledger.seal(BatchSpec(batch, "refund", "simulator"), new, seal="seal", actor=OPS)
    worker = ledger.join(batch, actor=this_actor(), lease_us=lease_s * SECOND_US)
    ledger.control(batch, Control(BatchCommand.START), actor=OPS, worker=worker)
    return worker


def intent(n: int, *, size: int = 10) -> Intend:
    """A first intent with a request body of ``size`` bytes."""
    now_us = wall_clock()
    return Intend(
        n,
        ItemEvent.INTENT,
        0,
        0,
        f"key-{n}",
        Request("POST", "/refunds", b"x" * size),
        send_by_us=now_us + 5 * SECOND_US,
        deadline_us=now_us + 15 * SECOND_US,
    )


def commit(n: int) -> Change:
    """The provider confirmed item ``n``."""
    return Change(n, ItemEvent.COMMIT, reference=f"re_{n}")
