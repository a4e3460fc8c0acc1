"""One worker's time on a batch, from joining to leaving: what its many calls share.

It holds the lease as this process sees it, the reasons to stop, and what blocked items in the present sweep. It makes
no calls itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from payonce.core.backoff import LONGEST_WAIT_US
from payonce.core.commands import Change, Landed, StopBatch
from payonce.core.decide import Doubt, GiveUp, PayAgain, PlanAgain, Verdict, or_pay_again
from payonce.core.errors import LedgerError
from payonce.core.model import SECOND_US, Actor, Batch, Declaration, Item, Limits, OpenIntent, Request, Worker
from payonce.core.money import Money
from payonce.core.payloads import PayloadPolicy
from payonce.core.states import ItemEvent
from payonce.engine.changes import is_of_call
from payonce.engine.pacing import LedgerTime, Pacer
from payonce.engine.ports import Clock, EngineLedger
from payonce.engine.references import References
from payonce.engine.schedule import Schedule
from payonce.engine.spool import Spool, Spooled
from payonce.engine.stop import Ending, StopRequest
from payonce.ledger.outputs import OutputFiles
from payonce.providers.protocol import Gate, Provider

# A call must be handed to the socket this long after its intent at the latest.
SEND_WINDOW_US: Final = 2 * SECOND_US
# A provider that refuses every call (429), or cannot be reached at all, for so long stops the batch.
RATE_PATIENCE_US: Final = 900 * SECOND_US
REACH_PATIENCE_US: Final = 120 * SECOND_US


def lease_for(limits: Limits, timeout_us: int) -> int:
    """The lease in use: as configured, raised where a call and its send window would not fit into three quarters of it
    (it is renewed every quarter)."""
    return max(limits.lease_us, (timeout_us + SECOND_US // 2) * 4 // 3)


@dataclass(slots=True)
class Session:
    """Shared by all calls of one worker. Times are the ledger's clock, except ``lease_steady_us``."""

    ledger: EngineLedger
    provider: Provider
    batch: Batch
    limits: Limits
    actor: Actor
    clock: Clock
    worker: Worker
    time: LedgerTime
    pacer: Pacer
    stop: StopRequest
    spool: Spool
    ledger_id: str
    lease_us: int
    lease_steady_us: int
    payloads: PayloadPolicy = PayloadPolicy()
    outputs: OutputFiles = field(default_factory=lambda: OutputFiles(None))
    schedule: Schedule = field(default_factory=Schedule)
    send_by: dict[int, int] = field(default_factory=dict)
    in_flight: int = 0
    heard_us: int = 0
    trouble: str | None = None
    references: References = field(default_factory=References)
    resolve_only: bool = False
    blocked_by_budget: bool = False
    blocked_by_target: bool = False
    look_again: bool = False
    fault: LedgerError | None = None
    spool_lost: list[str] = field(default_factory=list)
    # What the provider promises, and what follows from it: the total deadline of one call; how long after its intent a
    # call may still be handed to the socket, with the deadline inside the lease; whether an intent is written only when
    # its call has a free place, since without keys a crash must leave as few items in doubt as possible.
    declaration: Declaration = field(init=False)
    timeout_us: int = field(init=False)
    send_window_us: int = field(init=False)
    intents_wait_for_call: bool = field(init=False)

    def __post_init__(self) -> None:
        self.declaration = self.provider.declaration
        self.timeout_us = self.declaration.timeout_us
        self.send_window_us = max(SECOND_US // 4, min(SEND_WINDOW_US, self.lease_us * 3 // 4 - self.timeout_us))
        self.intents_wait_for_call = self.declaration.key is None

    def now_us(self) -> int:
        """The ledger's time as this worker carries it."""
        return self.time.now_us()

    def reserve_for(self, item: Item, request: Request) -> Money | None:
        """What an item without an amount holds of the budget while it is pending: what its request can cost at most,
        where the adapter can tell that, else the fixed reserve."""
        if item.money is not None:
            return None
        at_most = getattr(self.provider, "at_most", None)
        computed: Money | None = at_most(request, item) if at_most is not None else None
        if computed is not None or not self.limits.reserve:
            return computed
        currency, minor = next(iter(self.limits.reserve.items()))
        return Money.of_minor(minor, currency)

    def or_pay_again(self, verdict: GiveUp, intent: OpenIntent) -> GiveUp | PayAgain:
        """A verdict of no rule under the batch's policy for what stays unknown."""
        if self.limits.on_unknown != "pay_again" or self.resolve_only:
            return verdict
        return or_pay_again(verdict, intent, self.declaration, attempts=self.limits.attempts)

    def gate(self, send_by_us: int) -> Gate:
        """The question asked just before the first byte leaves: is there still a right to send?"""

        def may_send() -> bool:
            steady = self.clock.steady_us()
            now = self.time.at_steady(steady)
            if self.stop.end is not None or now >= send_by_us or self.pacer.slow_until_us > now:
                return False
            return steady + self.timeout_us <= self.lease_steady_us

        return may_send

    def renewed(self, worker: Worker, *, asked_steady_us: int) -> None:
        """The lease runs from when it was asked for, on the clock that counts suspended time."""
        self.worker = worker
        self.lease_steady_us = asked_steady_us + self.lease_us
        self.pacer.follow(worker)

    def not_landed(self, item: Item, landed: Landed) -> None:
        """An intent that did not land: nothing was sent. What it says about the batch is looked at later."""
        match landed:
            case Landed.OVER_BUDGET:
                self.blocked_by_budget = True
            case Landed.TARGET_BUSY:
                self.blocked_by_target = True
            case Landed.NOT_RUNNING:
                self.look_again = True
            case _:
                pass

    def late(self, item: Item, change: Change, landed: Landed) -> None:
        """An answer for an item that belongs to another worker now: evidence, kept in the spool for the next start."""
        if landed is Landed.STALE and change.event in (ItemEvent.COMMIT, ItemEvent.REFUSE):
            self.to_spool(item, change)
        self.schedule.finish(item.n, item.target)

    def to_spool(self, item: Item, change: Change) -> None:
        """Makes an answer durable outside the ledger. Nothing else to do if that fails too: it is told at the end."""
        # The item is as it was before its intent, which counted one attempt more.
        attempt = item.attempts + is_of_call(change)
        record = Spooled(
            self.ledger_id, self.batch.spec.id, item.id, item.n, item.generation, item.step, change, attempt
        )
        try:
            self.spool.write(record)
        except LedgerError as fault:
            self.spool_lost.append(f"{item.id}: {change.event} {change.reference or ''} ({fault.message})")

    def halt(self, fault: LedgerError) -> None:
        """The ledger failed: no new call."""
        self.fault = self.fault or fault
        self.stop.request(Ending.HALTED, code=fault.code, message=fault.message)

    def stopped_by(self, stop: StopBatch) -> None:
        """A change stopped the batch."""
        self.stop.request(Ending.STOPPED, code=stop.code, message=stop.message)

    def heard(self, now_us: int) -> None:
        """The provider answered something that was not a refusal for load."""
        self.heard_us = now_us
        self.trouble = None

    def patience(self, verdict: Verdict) -> StopBatch | None:
        """Whether refusals for load have lasted so long that the batch stops; the same command goes on later."""
        if not isinstance(verdict, PlanAgain | Doubt) or not verdict.load or verdict.code == "not_sent":
            return None
        if verdict.retry_after_us is not None and verdict.retry_after_us > LONGEST_WAIT_US:
            seconds = verdict.retry_after_us // SECOND_US
            return StopBatch(
                "retry_after_too_long", f"the provider asks to wait {seconds} s; run the command again then"
            )
        self.trouble = f"{verdict.code}: {verdict.message}"
        silent = self.time.now_us() - self.heard_us
        if verdict.code == "rate_limited":
            if silent > RATE_PATIENCE_US:
                return StopBatch("rate_limited_too_long", "the provider has answered nothing but 429 for 15 minutes")
        elif silent > REACH_PATIENCE_US:
            return StopBatch("provider_unreachable", f"no answer for two minutes: {verdict.message}")
        return None


Say = Callable[[str], None]
