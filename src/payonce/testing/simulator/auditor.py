"""Who says that a world went wrong: from what truly happened at the provider, from what was to be done, and at the end
from what the ledger claims. It asks no part of the engine for its opinion.

At the door it sees each call as it leaves (was its intent durable, is the lease long enough, is it what was sealed, is
the target free); at the provider each execution (at most one an item and step, within the budget); at the end every
item's state against its executions. The first violation is the one that counts: it ends the world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from payonce.core.commands import Change, Command, Intend, Landed
from payonce.core.model import SECOND_US, Batch, Item, NewItem, OpenIntent, Status, Worker
from payonce.core.outcome import Executed, Reply, Unresolved
from payonce.core.states import BatchState, ItemEvent, ItemState
from payonce.engine.session import SEND_WINDOW_US
from payonce.ledger.rows import ItemRow
from payonce.testing.simulator.books import Books, Call, Effect, encode
from payonce.testing.simulator.keyrules import KeyRules
from payonce.testing.simulator.scenario import Scenario

# How long after a pause or a cancellation a call may still leave under an intent that was durable before.
_LAST_CALLS_US: Final = SEND_WINDOW_US + SECOND_US
# How often a worker may ask in vain for one item in a second, while nothing of its own is taken.
_MOST_TRIES: Final = 20
# Why an item may end unknown, besides what the line of SPEC section 13 that applies leaves to a person.
_ALWAYS: Final = frozenset({"wrong_amount", "later_step_refused", "cancelled_while_pending", "half_done"})
_WITH_LOOK_UP: Final = frozenset({"lookup_failed", "already_done_not_found", "already_done_otherwise", "ambiguous"})


@dataclass(slots=True)
class Intent:
    """A durable intent that no call has used yet."""

    worker: int
    step: int
    key: str | None
    asked_us: int
    event: ItemEvent


@dataclass(slots=True)
class Auditor:
    """The checks of one world. ``violations`` are sentences; ``stop`` is called with the first."""

    scenario: Scenario
    books: Books
    now: Callable[[], int]
    stop: Callable[[], None]
    processes: list[Any]
    violations: list[str] = field(default_factory=list)
    attempts: int = 0
    held_since_us: int | None = None
    _inputs: dict[str, NewItem] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)
    _intents: dict[str, Intent] = field(default_factory=dict)
    _owners: dict[int, int] = field(default_factory=dict)
    _beyond: dict[str, int] = field(default_factory=dict)
    _contradicted: set[str] = field(default_factory=set)
    _tries: dict[int, dict[int, list[int]]] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    budget: dict[str, int] = field(default_factory=dict)
    keys: KeyRules = field(init=False)

    def __post_init__(self) -> None:
        self._inputs = {item.id: item for item in self.scenario.items}
        self._names = [item.id for item in self.scenario.items]
        self.budget = dict(self.scenario.limits.budget)
        self.keys = KeyRules(self.scenario.declaration)

    def blame(self, text: str) -> None:
        """A promise was broken."""
        self.violations.append(f"{self.now() / SECOND_US:.6f}s: {text}")
        self.stop()

    # what the ledger has taken

    def landed(self, worker: Worker, commands: tuple[Command, ...], landed: tuple[Landed, ...], asked_us: int) -> None:
        """A worker's commands are durable, or were not taken."""
        for command, result in zip(commands, landed, strict=True):
            if result is not Landed.LANDED:
                self._refused(worker.fence, command.n)
                continue
            n = command.n
            if worker.fence in self._tries:
                del self._tries[worker.fence]
            if type(command) is Intend:
                if command.event is ItemEvent.INTENT:
                    self._owners[n] = worker.fence
                elif self._owners.get(n) != worker.fence:
                    self.blame(f"worker {worker.fence} wrote an intent for {self._names[n - 1]}, which is another's")
                self._intents[self._names[n - 1]] = Intent(
                    worker.fence, command.step, command.key, asked_us, command.event
                )
                continue
            if command.event is ItemEvent.NOT_EXECUTED:
                self.keys.not_executed(self._names[n - 1])
            elif type(command) is Change and command.burnt:
                self.keys.burnt(self._names[n - 1])
            self._intents.pop(self._names[n - 1], None)
            if self._owners.get(n) != worker.fence and command.event is not ItemEvent.REFUSE:
                self.blame(f"worker {worker.fence} wrote {command.event} for {self._names[n - 1]}, which is another's")

    def _refused(self, fence: int, n: int) -> None:
        """A worker that got nowhere meanwhile asks for the same again and again."""
        tries = self._tries.setdefault(fence, {}).setdefault(n, [])
        tries.append(self.now())
        if len(tries) > _MOST_TRIES and tries[-1] - tries[-_MOST_TRIES] < SECOND_US:
            self.blame(f"worker {fence} asked for {self._names[n - 1]} more than {_MOST_TRIES} times in a second")

    def handed_over(self, fence: int, intents: tuple[OpenIntent, ...]) -> None:
        """Pending items have a new worker."""
        for intent in intents:
            self._owners[intent.item.n] = fence
            self._intents.pop(intent.item.id, None)

    # the door

    def sent(self, call: Call, item: str) -> None:
        """A call leaves."""
        self.attempts += 1
        process, now_us = call.process, call.sent_us
        intent = self._intents.pop(call.item, None)
        if call.item != item:
            self.blame(f"a call for {item} asks for {call.item}")
        mine = (process.ledger.fence, call.step, call.key)
        if intent is None or (intent.worker, intent.step, intent.key) != mine:
            self.blame(f"{process.name} sent a call for {call.item} without a durable intent for it (invariant 1)")
        elif now_us - intent.asked_us > SEND_WINDOW_US:
            self.blame(f"{process.name} sent a call for {call.item} after its send_by (invariant 6)")
        if call.deadline_us > process.ledger.lease_end_us:
            self.blame(
                f"{process.name} sent a call for {call.item} whose deadline is not inside the lease (invariant 6)"
            )
        if process.fault_heard_us is not None and now_us > process.fault_heard_us:
            self.blame(f"{process.name} sent a call for {call.item} after a ledger fault (invariant 5)")
        if process.signalled_us is not None and now_us > process.signalled_us:
            self.blame(f"{process.name} sent a call for {call.item} after it was asked to end (section 9)")
        if process.mismatch_us is not None and now_us > process.mismatch_us:
            self.blame(f"{process.name} sent a call for {call.item} after a wrong amount (invariant 10)")
        if self.held_since_us is not None and now_us > self.held_since_us + _LAST_CALLS_US + self.scenario.disk_us:
            self.blame(f"{process.name} sent a call for {call.item} though the batch is paused or cancelled")
        self._facts(call)
        wrong = self.keys.sent(call, None if intent is None else intent.event)
        if wrong is not None:
            self.blame(wrong)

    def _facts(self, call: Call) -> None:
        """Is it what was sealed?"""
        sealed = self._inputs.get(call.item)
        if sealed is None or sealed.money is None:
            self.blame(f"a call for {call.item}, which was never sealed (invariant 8)")
            return
        target = sealed.target if self.scenario.targets and sealed.target is not None else call.item
        if call.body != encode(call.item, step=call.step, money=sealed.money, target=target):
            self.blame(f"a call for {call.item} differs from what was sealed (invariant 8)")

    def target_is_free(self, call: Call, outstanding: dict[int, Call], can_execute: Callable[[Call], bool]) -> None:
        """No other item's call on this target is waited for, or can still be executed."""
        for other in outstanding.values():
            if other.item == call.item:
                continue
            waits = other.waits and call.sent_us <= other.deadline_us  # a frozen caller hears of its deadline later
            if waits or can_execute(other):
                self.blame(f"{call.item} and {other.item} are in flight together on {call.target} (invariant 11)")

    # the provider

    def executed(self, call: Call, effect: Effect) -> None:
        """Money moved."""
        currency = effect.money.currency
        if effect.money != call.money:
            self._beyond[currency] = self._beyond.get(currency, 0) + effect.money.minor - call.money.minor
        done = self.books.of_item[effect.item, effect.step]
        if len(done) > 1 and self._is_held_to_once():
            if done[-2].call == effect.call:  # the provider did it twice for one request
                self._beyond[currency] = self._beyond.get(currency, 0) + effect.money.minor
            else:
                self.blame(
                    f"{effect.item} was executed twice, as {done[-2].reference} and {effect.reference} (invariant 2)"
                )
        budget = self.budget.get(currency)
        steps = len(self.scenario.declaration.steps)
        if budget is not None and steps == 1 and self._is_held_to_once():
            spent = self.books.spent[currency] - self._beyond.get(currency, 0)
            if spent > budget:
                self.blame(f"{spent} {currency} were spent, the budget is {budget} (invariant 7)")

    def _is_held_to_once(self) -> bool:
        return self.scenario.liar != "keys_ignored" or self.scenario.declaration.key is None

    def answered(self, call: Call, reply: Reply) -> None:
        """An answer arrived at a living process."""
        outcome = reply.outcome
        if isinstance(outcome, Unresolved) and outcome.final:
            self._contradicted.add(call.item)
        if isinstance(outcome, Executed):
            if outcome.billed is not None and outcome.billed != call.money:
                call.process.mismatch_us = self.now()
            if call.step == len(self.scenario.declaration.steps) - 1:
                self.told[call.item] = call.process

    def ended(self, process: Any) -> None:
        """A process came to its end by itself. One that was hurried may have left answers behind."""
        if process.hurried or self.scenario.ledger_slow:
            self.told = {item: who for item, who in self.told.items() if who is not process}

    # the end

    def count(self, status: Status) -> None:
        """Nothing is lost at any moment: the states add up to what was sealed (invariant 3)."""
        if sum(tally.items for tally in status.tallies) != len(self._names):
            self.blame("the states do not add up to the number of items sealed (invariant 3)")

    def unknown_for(self, item: Item) -> None:
        """Whether an item may wait for a person, by the line of SPEC section 13 that applies."""
        told = self.told.get(item.id)
        if told is not None and told.ended and any(self._has_run_since(process, told) for process in self.processes):
            self.blame(f"{told.name} was told that {item.id} is executed, and it is unknown (invariant 5)")
        code, which = item.code or "", self.scenario.guarantee
        if code in _ALWAYS or item.id in self._contradicted:
            return
        if which in ("both", "look-up"):
            if code not in _WITH_LOOK_UP:
                self.blame(f"{item.id} is unknown as {code}, though the provider can be asked (section 13)")
        elif which == "keys" and code == "no_answer":
            self.blame(f"{item.id} is unknown as {code}, though its key could be sent again (section 13)")

    @staticmethod
    def _has_run_since(process: Any, told: Any) -> bool:
        """Whether a process came and went since another one ended, and so must have taken in what that one left."""
        return bool(process.ended and process.engine_us is not None and process.engine_us > told.ended_us)

    def settled(self, items: list[ItemRow], batch: Batch, findings: Any) -> None:
        """At the very end: every item's state against what truly happened."""
        if len(items) != len(self._names) or [item.id for item in items] != self._names:
            self.blame("the ledger's items are not the ones sealed (invariant 3)")
        for item in items:
            self._settled(item, findings)
        if batch.state is BatchState.FINISHED and any(item.state.is_open for item in items):
            self.blame("the batch is finished, but items are open")

    def _settled(self, item: ItemRow, findings: Any) -> None:
        steps = len(self.scenario.declaration.steps)
        effects = self.books.effects(item.id, steps=steps)
        match item.state:
            case ItemState.COMMITTED:
                self._committed(item, effects, findings)
            case ItemState.REFUSED | ItemState.SKIPPED:
                told = ("half_done", item.id) in findings  # cancelled between two of its calls
                if any(effect.step >= item.step for effect in effects) or (effects and not told):
                    self.blame(f"{item.id} is {item.state}, but was executed as {effects[0].reference}")
            case ItemState.PLANNED:
                if any(effect.step >= item.step for effect in effects):
                    self.blame(f"{item.id} is planned, but was executed as {effects[0].reference}")
            case _:
                pass
        if item.id in self.told and item.state is not ItemState.COMMITTED:
            self.blame(
                f"{self.told[item.id].name} was told that {item.id} is executed, and it is {item.state} (invariant 5)"
            )

    def _is_told_by_time_and_lied_to(self, item: ItemRow) -> bool:
        """Whether the item has an execution of another one over the same amount on its target, where the provider executes
        twice and nothing in a look-up tells the two apart: the one too many is taken by an item, whose own by the next."""
        lookup = self.scenario.declaration.lookup
        if self.scenario.liar != "duplicate" or lookup is None or lookup.own_reference or lookup.key:
            return False
        on_target = self.books.on_target.get(item.target, [])
        return any(e.reference == item.reference and e.money.minor == item.minor for e in on_target)

    def _committed(self, item: ItemRow, effects: list[Effect], findings: Any) -> None:
        last = [effect for effect in effects if effect.step == len(self.scenario.declaration.steps) - 1]
        named = [effect for effect in last if effect.reference == item.reference]
        if not named and self._is_told_by_time_and_lied_to(item):
            return
        if not named:
            self.blame(f"{item.id} is committed as {item.reference}, which was never executed for it")
            return
        lied = self.scenario.liar == "other_amount_replayed"
        billed, true = (item.billed_minor, item.billed_currency), named[0].money
        if billed != (true.minor, true.currency) and not lied:
            self.blame(f"{item.id} is committed over {billed}, executed was {true} (invariant 10)")
        if billed != (item.minor, item.currency) and ("amount_mismatch", item.id) not in findings:
            self.blame(f"{item.id} was billed {billed} instead of {item.minor}, without a finding (invariant 10)")
