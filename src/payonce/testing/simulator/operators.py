"""The people of a simulated world. The honest operator knows what the provider truly did and says it; the careless one
answers twice, to a question that is over. Both use the real operator's commands, or the ledger's verb behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from payonce.core.commands import Change
from payonce.core.errors import UsageError
from payonce.core.model import Actor, Item, Limits, Status
from payonce.core.states import BatchState, ItemEvent, ItemState
from payonce.service.operating import Decision, Operator
from payonce.testing.simulator.process import BATCH, SECOND_US

if TYPE_CHECKING:
    from payonce.testing.simulator.world import World

_WHO: Final = Actor(user="operator", host="desk")
_REASON: Final = "looked at the provider's own list"


class HonestOperator:
    """Acts on the ledger of a world, beside its processes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._commands: Operator | None = None

    @property
    def commands(self) -> Operator:
        """The real commands."""
        if self._commands is None:
            self._commands = Operator(self.world.store, _WHO)
        return self._commands

    def _say(self, text: str) -> None:
        if self.world.log is not None:
            self.world.log(f"operator: {text}")

    def _try(self, text: str, command: Callable[[], object]) -> bool:
        try:
            command()
        except UsageError as refused:
            self._say(f"{text}: refused ({refused.code})")
            return False
        self._say(text)
        return True

    # in the middle of everything

    def interfere(self) -> None:
        """One thing that a person does while all is going on."""
        doing = self.world.rng.choices(
            (self._pause, self._retry, self._resolve, self._careless, self._cancel), (4, 2, 4, 3, 0.3)
        )[0]
        doing()

    def _pause(self) -> None:
        self._try("pause", lambda: self.commands.pause(BATCH, reason="lunch"))
        self._hold()
        world = self.world
        world.timeline.at(world.timeline.now_us + int(world.rng.random() * 20 * SECOND_US), self._resume)

    def _resume(self) -> None:
        if self.world.auditor.held_since_us is not None:
            self._try("resume", lambda: self.commands.resume(BATCH, reason="lunch is over"))
        self._hold()

    def _hold(self) -> None:
        """Notes from when on nothing may be sent."""
        state = self.world.store.status(BATCH).batch.state
        auditor = self.world.auditor
        if state not in (BatchState.PAUSED, BatchState.CANCELLED):
            auditor.held_since_us = None
        elif auditor.held_since_us is None:
            auditor.held_since_us = self.world.timeline.now_us

    def _cancel(self) -> None:
        self._try("cancel", lambda: self.commands.cancel(BATCH, reason="the customer called"))
        self._hold()

    def _retry(self) -> None:
        refused = self.world.items(ItemState.REFUSED)
        if refused:
            item = self.world.rng.choice(refused)
            self.world.far.declined.discard(item.id)
            if self._try(f"retry {item.id}", lambda: self.commands.retry(BATCH, [item.id], reason="they paid")):
                self.world.auditor.keys.put_back(item.id)

    def _resolve(self) -> None:
        unknown = self.world.items(ItemState.UNKNOWN)
        if unknown:
            self._answer(self.world.rng.choice(unknown))

    def _careless(self) -> None:
        """The same answer once more, to an item that has been committed since: the ledger must not take it."""
        done = self.world.items(ItemState.COMMITTED)
        if not done:
            return
        item = self.world.rng.choice(done)
        again = Change(item.n, ItemEvent.NOT_EXECUTED, generation=item.generation + 1)
        wrong = Change(item.n, ItemEvent.COMMIT, reference="by mistake")
        change = self.world.rng.choice((again, wrong))
        landed = self.world.store.operate(BATCH, item.id, [change], actor=_WHO, reason="clicked twice")
        self._say(f"{change.event} on {item.id}, which is committed: {landed}")

    # when a person is asked

    def let_go_on(self, status: Status) -> bool:
        """Takes away what holds the batch. Returns False where it has to stay as it is: the budget is used up."""
        state, code = status.batch.state, status.batch.reason_code
        if state is BatchState.STOPPED and code == "budget":
            if self.world.rng.random() < 0.5 and self.world.chaos.over:
                return False
            self._raise_budget()
        if state is BatchState.STOPPED and code == "targets_held":
            self.settle_unknown()
        if state in (BatchState.PAUSED, BatchState.STOPPED) or status.batch.held:
            self._try("resume", lambda: self.commands.resume(BATCH, reason=_REASON))
        self._hold()
        return True

    def _raise_budget(self) -> None:
        old = self.world.limits
        more = {currency: minor * 10 + 10**6 for currency, minor in old.budget.items()}
        self._say("raises the budget")
        self.world.change_limits(
            Limits(old.concurrency, old.rate_per_ks, old.attempts, more, grace_us=old.grace_us, lease_us=old.lease_us)
        )

    def settle_unknown(self) -> bool:
        """Answers every unknown item as the provider's own list says. Returns False where there is none to answer."""
        world = self.world
        self._hold()  # a batch that was paused with nothing left to do may have been finished since
        unknown = world.items(ItemState.UNKNOWN)
        for item in unknown:
            world.auditor.unknown_for(item)
        if unknown and world.chaos.over:
            world.let_pass(world.far.quiet_us - world.timeline.now_us + SECOND_US)
        answered = [self._answer(item) for item in unknown]
        return any(answered)

    def _answer(self, item: Item) -> bool:
        """One unknown item, if what happened to it is certain now and can be said with a command."""
        far, last = self.world.far, len(self.world.scenario.declaration.steps) - 1
        if any(call.works for call in far.outstanding.get(item.target, {}).values()):
            return False
        if self.world.timeline.now_us < far.quiet_us:
            return False
        done = far.books.of_item.get((item.id, item.step), [])
        begun = bool(done) or item.step > 0
        over = self.world.store.status(BATCH).batch.state is BatchState.CANCELLED
        if begun and (over or done) and not (done and item.step == last):
            # No command says that one step of several is done, and a cancelled batch does not go on: by hand, then.
            first = item.step + 1 if done else item.step
            done = [far.by_hand(item, step) for step in range(first, last + 1)]
        reason = _REASON
        if done:
            decision = Decision(
                ItemState.COMMITTED,
                reason,
                done[-1].reference,
                done[-1].money,
                other_amount=done[-1].money != item.money,
            )
        elif item.step == 0 and (item.target in far.done_before or self.world.rng.random() < 0.3):
            decision = Decision(ItemState.REFUSED, reason)
        else:
            far.declined.discard(item.id)  # nobody has the same thing refused for ever: whatever it was has been mended
            decision = Decision(ItemState.PLANNED, reason)
        said = self._try(
            f"resolve {item.id} as {decision.state}", lambda: self.commands.resolve(BATCH, item.id, decision)
        )
        if said and decision.state is ItemState.PLANNED:
            self.world.auditor.keys.put_back(item.id)
        return True
