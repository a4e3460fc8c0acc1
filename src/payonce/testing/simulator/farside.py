"""The simulated provider: it keeps what it declares, does everything else that providers were seen to do, and writes
down what truly happened. It knows requests and keys; it has never heard of ledgers, items' states or processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from payonce.core.model import SECOND_US, Item
from payonce.core.money import Money
from payonce.core.outcome import (
    AlreadyDone,
    Executed,
    Execution,
    Found,
    LookupFailed,
    LookupReply,
    Outcome,
    Refused,
    Reply,
    Stop,
    Unresolved,
)
from payonce.testing.simulator.behaviours import BEHAVIOURS, Behaviour
from payonce.testing.simulator.books import Books, Call, Effect
from payonce.testing.simulator.loop import START_US, Timeline
from payonce.testing.simulator.scenario import Scenario

_LONG_AGO_US = 3 * 3600 * SECOND_US
_STORM_SHARE = 0.9
_BODY = b"{}"


@dataclass(slots=True)
class Remembered:
    """What the provider knows of a key: since when, for which request, and what it answers to a repeat."""

    since_us: int
    body: bytes
    answer: Outcome | None  # None while the first call is running


class FarSide:
    """One provider. ``executed`` is told of each execution, ``fault_share`` is set to 0 when the world calms down."""

    def __init__(self, timeline: Timeline, rng: Random, scenario: Scenario, executed: Callable[[Call, Effect], None]):
        self.timeline = timeline
        self.rng = rng
        self.scenario = scenario
        self.books = Books()
        self.keys: dict[str, Remembered] = {}
        self.outstanding: dict[str, dict[int, Call]] = {}
        self.fault_share = scenario.fault_share
        self.look_up_fault_share = scenario.look_up_fault_share
        self.outages: list[tuple[int, int]] = []
        self.storms = scenario.storms
        self.calls = self.look_ups = 0
        self.quiet_us = 0
        self.log: Callable[[str], None] | None = None
        self._executed = executed
        self._retention = scenario.declaration.key.retention_us if scenario.declaration.key else None
        self._stores = scenario.declaration.key is not None and scenario.declaration.key.stores_errors
        self._honours = scenario.declaration.key is not None and scenario.liar != "keys_ignored"
        ids = [item.id for item in scenario.items]
        self.declined = {i for i in ids if rng.random() < scenario.declined_share}
        self.done_before = self._foreign_deeds()

    def _foreign_deeds(self) -> set[str]:
        """Targets on which somebody else has done the thing already; and others where something small was done."""
        done: set[str] = set()
        for item in self.scenario.items:
            assert item.target is not None and item.money is not None
            if item.target not in self.books.on_target and self.rng.random() < self.scenario.done_before_share:
                part = self.rng.random() < 0.5
                money = Money.of_minor(1, item.money.currency) if part else item.money
                self.books.add_foreign(item.target, money=money, at_us=START_US - _LONG_AGO_US)
                if not part:
                    done.add(item.target)
        return done

    # calls

    def take(self, call: Call) -> None:
        """A request is on its way."""
        self.calls += 1
        self.outstanding.setdefault(call.target, {})[call.number] = call
        kind = self._fault()
        if kind is None:
            self.reply(call, self.serve(call))
            return
        if self.log is not None:
            self.log(f"call {call.number} meets {kind}")
        BEHAVIOURS[kind](self, call)

    def _fault(self) -> str | None:
        """What the next call meets, if anything."""
        if self.storms:
            now_us = self.timeline.now_us
            for storm in self.storms:
                if storm.begin_us <= now_us < storm.end_us and self.rng.random() < _STORM_SHARE:
                    return storm.fault
        if self.fault_share and self.rng.random() < self.fault_share:
            return self.rng.choice(self.scenario.faults)
        return None

    def calm_down(self) -> None:
        """Nothing goes wrong here any more."""
        self.fault_share = self.look_up_fault_share = 0.0
        self.outages.clear()
        self.storms = ()

    def reply(self, call: Call, reply: Reply, *, after_us: int | None = None) -> None:
        """The answer arrives, unless the deadline comes first."""
        wait = int(self.scenario.network_us * (0.5 + self.rng.random())) if after_us is None else after_us
        at_us = self.timeline.now_us + wait
        if at_us >= call.deadline_us:
            at_us, reply = call.deadline_us, Reply(Unresolved("timeout", "no answer in time"))
        self.timeline.at(at_us, call.answer, reply, loop=call.process.loop)

    def serve(self, call: Call, *, fault: Outcome | None = None, executes: bool = True) -> Reply:
        """What the provider does with a request that has arrived. ``fault`` is what it answers instead of the truth,
        ``executes`` whether it gets as far as moving money."""
        known = self.known(call)
        if known is not None:
            return self.repeat(call, known)
        refusal = self.refusal(call)
        if refusal is not None:
            if self._stores and not isinstance(refusal, Stop):
                self.remember(call, refusal)
            return Reply(refusal)
        truth = self.execute(call) if executes else None
        if fault is None:
            assert truth is not None
            self.remember(call, truth)
            return Reply(truth, status=200, response=_BODY)
        if truth is not None:
            self.remember(call, fault if self._stores and _is_error(fault) else truth)
        elif self._stores and _is_error(fault):
            self.remember(call, fault)
        return Reply(fault)

    def known(self, call: Call) -> Remembered | None:
        """What is known of the call's key, if it is remembered still."""
        if call.key is None or not self._honours:
            return None
        known = self.keys.get(call.key)
        if known is None:
            return None
        if self._retention is not None and self.timeline.now_us - known.since_us >= self._retention:
            del self.keys[call.key]
            return None
        return known

    def remember(self, call: Call, answer: Outcome | None) -> None:
        """Keeps what a repeat of the call will be told."""
        if call.key is None:
            return
        known = self.keys.get(call.key)
        if known is None:
            self.keys[call.key] = Remembered(self.timeline.now_us, call.body, answer)
        else:
            known.answer = answer

    def repeat(self, call: Call, known: Remembered) -> Reply:
        """The answer to a key that is known."""
        if known.body != call.body:
            return Reply(Unresolved("key_reused", "this key was used for another request", final=True), status=400)
        if known.answer is None:
            return Reply(Unresolved("in_use", "the first call is still running", in_progress=True), status=409)
        answer = known.answer
        if isinstance(answer, Unresolved):
            answer = Unresolved(answer.code, answer.message, burnt=True)
        elif self.scenario.liar == "other_amount_replayed" and isinstance(answer, Executed):
            answer = Executed(answer.reference, Money.of_minor(call.money.minor + 1, call.money.currency))
        return Reply(answer, replayed=True)

    def refusal(self, call: Call) -> Outcome | None:
        """Why the provider will not do it, whatever else goes wrong."""
        if any(start <= self.timeline.now_us < end for start, end in self.outages):
            return Stop("bad_credentials", "401")
        if call.item in self.declined:
            return Refused("declined", "no")
        if call.target in self.done_before:
            return AlreadyDone("already_done", "somebody did it")
        return None

    def execute(self, call: Call) -> Executed:
        """Moves the money."""
        money = call.money
        if self.scenario.liar == "wrong_amount" and self.rng.random() < 0.1:
            money = Money.of_minor(money.minor * 2 + 1, money.currency)
        at_us = START_US + self.timeline.now_us + self.scenario.skew_us
        effect = self.books.execute(call, money=money, at_us=at_us)
        self._executed(call, effect)
        if self.scenario.liar == "duplicate" and self.rng.random() < 0.1:
            self._executed(call, self.books.execute(call, money=money, at_us=at_us))
        return Executed(effect.reference, money)

    # what a behaviour is made of

    def work(self, call: Call, then: Behaviour) -> int:
        """Something of a call goes on after a while, at the latest when the provider says it can no longer start."""
        wait = int(self.scenario.declaration.max_execution_us * self.rng.choice((self.rng.random(), 0.999)))
        call.works = True
        at_us = self.timeline.now_us + wait
        self.quiet_us = max(self.quiet_us, at_us)
        self.timeline.at(at_us, self._worked, call, then)
        return at_us

    def _worked(self, call: Call, then: Behaviour) -> None:
        if self.log is not None:
            self.log(f"call {call.number} goes on at the provider")
        then(self, call)
        call.works = False
        self._leave_if_over(call)

    def by_hand(self, item: Item, step: int) -> Effect:
        """A person does one step of an item at the provider's own desk."""
        assert item.money is not None
        call = Call(0, None, item.id, step, item.money, item.target, None, b"", 0, 0, lambda reply: None)
        return self.books.execute(call, money=item.money, at_us=START_US + self.timeline.now_us)

    def can_execute(self, call: Call) -> bool:
        """Whether a call that is still on its way, or being worked on, may yet move money."""
        if not call.works or (call.item, call.step) in self.books.of_item:
            return False
        known = self.known(call)
        return known is None or known.answer is None

    # who still waits for what

    def answered(self, call: Call) -> None:
        """The caller has its answer, or is no more."""
        call.waits = False
        self._leave_if_over(call)

    def forget(self, process: object) -> None:
        """A process died: nobody waits for its calls' answers, but what arrived goes on."""
        for calls in tuple(self.outstanding.values()):
            for call in tuple(calls.values()):
                if call.process is process:
                    self.answered(call)

    def _leave_if_over(self, call: Call) -> None:
        if not call.works and not call.waits:
            on_target = self.outstanding[call.target]
            on_target.pop(call.number, None)
            if not on_target:
                del self.outstanding[call.target]

    # look-ups

    def look_up(self, target: str, *, step: int) -> LookupReply:
        """What is shown of a target now: everything older than the lag, of the rest perhaps something."""
        self.look_ups += 1
        if any(start <= self.timeline.now_us < end for start, end in self.outages):
            return LookupFailed("bad_credentials", "401", stop=True)
        if self.look_up_fault_share and self.rng.random() < self.look_up_fault_share:
            load = self.rng.random() < 0.3
            code = "rate_limited" if load else self.rng.choice(("timeout", "incomplete"))
            return LookupFailed(code, "the look-up failed", load=load)
        lookup = self.scenario.declaration.lookup
        assert lookup is not None
        surely = START_US + self.timeline.now_us + self.scenario.skew_us - lookup.lag_us
        effects = self.books.on_target.get(target, ())
        shown = [e for e in effects if e.at_us <= surely or self.rng.random() >= self.scenario.hides]
        return Found(
            tuple(
                Execution(
                    e.reference,
                    e.money,
                    own_reference=e.item if lookup.own_reference else None,
                    key=e.key if lookup.key else None,
                    at_us=e.at_us,
                )
                for e in shown
                if e.step == step
            )
        )


def _is_error(outcome: Outcome) -> bool:
    return isinstance(outcome, Unresolved) and outcome.code.startswith("status_")
