"""States of items and batches, and the one table that says which event may move an item where (SPEC section 2).

Everything else (the stores' SQL, the documentation, buttons) is checked against this table. It must never grow an
edge that lets an item be sent again without proof.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ItemState(StrEnum):
    """Where an item stands. The value is its name everywhere: SQL, JSON, command line, web."""

    PLANNED = "planned"
    PENDING = "pending"
    COMMITTED = "committed"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    SKIPPED = "skipped"

    @property
    def is_open(self) -> bool:
        """Whether a run still has work with it: planned or pending."""
        return self in (ItemState.PLANNED, ItemState.PENDING)

    @property
    def holds_money(self) -> bool:
        """Whether its amount counts as a reservation: it may have been or may be being executed."""
        return self in (ItemState.PENDING, ItemState.UNKNOWN)


class Settlement(StrEnum):
    """Whether the money has arrived: a fact of its own beside the state."""

    NONE = "none"
    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETURNED = "returned"


class BatchState(StrEnum):
    """Where a batch stands. A halted or interrupted batch is one whose last run ended so; the same command goes on."""

    SEALED = "sealed"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    HALTED = "halted"
    FINISHED = "finished"
    CANCELLED = "cancelled"


class ItemEvent(StrEnum):
    """What can happen to an item. Each is one entry of the trail."""

    INTENT = "intent"  # a first call (of this generation) may be sent from now on
    RESEND = "resend"  # the same key and bytes may be sent once more
    TAKEOVER = "takeover"  # a dead worker's pending item has a new worker
    UNRESOLVED = "unresolved"  # an answer or error was seen that does not tell whether it was executed
    LOOKUP = "lookup"  # the provider was asked and the answer did not end the matter
    STEP_DONE = "step_done"  # one of several calls was executed; the next one is due
    COMMIT = "commit"  # executed, with a reference and the billed amount
    REFUSE = "refuse"  # a definite no
    NOT_EXECUTED = "not_executed"  # surely nothing happened; may be tried again
    PAY_AGAIN = "pay_again"  # it may have been executed; the batch's own policy pays for it once more
    UNDECIDED = "undecided"  # no rule can decide it: waits for a statement or a person
    SKIP = "skip"  # kept out by a guard, done by someone else, or cancelled
    RETRY = "retry"  # an operator puts a refused or skipped item back
    SETTLE = "settle"  # a later fact about the money


_S, _E = ItemState, ItemEvent

TRANSITIONS: Final[dict[tuple[ItemState, ItemEvent], ItemState]] = {
    # The intent is durable: from here on a call may be on its way.
    (_S.PLANNED, _E.INTENT): _S.PENDING,
    # A guard kept it out before anything was sent, or an operator cancelled it.
    (_S.PLANNED, _E.SKIP): _S.SKIPPED,
    # A guard refuses it before anything was sent (an amount over the limit, no such target at the provider).
    (_S.PLANNED, _E.REFUSE): _S.REFUSED,
    # Not to be sent, though it has no call out: it was paid again and its earlier call may have been executed, or the
    # provider shows an execution under its reference or key that this ledger does not know.
    (_S.PLANNED, _E.UNDECIDED): _S.UNKNOWN,
    # Sent again under the same key, after the key's rules or a look-up allowed it.
    (_S.PENDING, _E.RESEND): _S.PENDING,
    # The worker that wrote the intent is dead; the new one resolves, it does not just send.
    (_S.PENDING, _E.TAKEOVER): _S.PENDING,
    # Evidence that does not decide.
    (_S.PENDING, _E.UNRESOLVED): _S.PENDING,
    (_S.PENDING, _E.LOOKUP): _S.PENDING,
    # One call of several is done; the item stays pending, holds its target and its money.
    (_S.PENDING, _E.STEP_DONE): _S.PENDING,
    # Executed.
    (_S.PENDING, _E.COMMIT): _S.COMMITTED,
    # Definitely not executed, and asking again is pointless.
    (_S.PENDING, _E.REFUSE): _S.REFUSED,
    # Definitely not executed; may be tried again.
    (_S.PENDING, _E.NOT_EXECUTED): _S.PLANNED,
    # Nobody knows whether it was executed. The only edge without proof: a batch of calls may declare that such an item
    # is paid for once more, up to a limit, and each such payment is a finding (ledger.pay_again).
    (_S.PENDING, _E.PAY_AGAIN): _S.PLANNED,
    # No rule decides it.
    (_S.PENDING, _E.UNDECIDED): _S.UNKNOWN,
    # The provider shows that someone else did it.
    (_S.PENDING, _E.SKIP): _S.SKIPPED,
    # Only a look-up, a statement or an operator, each with evidence.
    (_S.UNKNOWN, _E.COMMIT): _S.COMMITTED,
    (_S.UNKNOWN, _E.REFUSE): _S.REFUSED,
    (_S.UNKNOWN, _E.NOT_EXECUTED): _S.PLANNED,
    # More evidence for a person, without a decision.
    (_S.UNKNOWN, _E.LOOKUP): _S.UNKNOWN,
    # Only an operator, with a reason; a new generation where a key was used.
    (_S.REFUSED, _E.RETRY): _S.PLANNED,
    (_S.SKIPPED, _E.RETRY): _S.PLANNED,
    # The money moved on, or came back. Never a reason to send again.
    (_S.COMMITTED, _E.SETTLE): _S.COMMITTED,
}


def transition(state: ItemState, event: ItemEvent) -> ItemState | None:
    """The state after an event, or None where the table has no such edge: then the event is not written at all."""
    return TRANSITIONS.get((state, event))


FINAL_STATES: Final = frozenset({_S.COMMITTED, _S.REFUSED, _S.UNKNOWN, _S.SKIPPED})

# Which batch states a command may be given in. A cancelled or finished batch is over; everything else can go on.
RUNNABLE: Final = frozenset(
    {BatchState.SEALED, BatchState.RUNNING, BatchState.STOPPED, BatchState.INTERRUPTED, BatchState.HALTED}
)
