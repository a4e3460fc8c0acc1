"""Deliberately broken variants of payonce, each a patch that lasts for a block: what the simulator has to catch.

Nothing in the sources can switch these on. Each says in one line what is broken about it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from payonce.core import decide, sighting
from payonce.core.commands import Change, Landed
from payonce.core.model import Declaration
from payonce.core.outcome import Executed, NotExecuted, Refused, Unresolved
from payonce.core.states import TRANSITIONS, BatchState, ItemEvent, ItemState
from payonce.core.verdict import Doubt, GiveUp, PlanAgain, SendAgain
from payonce.engine import attempt, beside, changes, runner, session, takein
from payonce.ledger import costs, desk, rules, store_items
from payonce.ledger.rows import NO_INTENT

Patch = contextlib.AbstractContextManager[Any]


@dataclass(frozen=True)
class Mutant:
    """``what`` is broken, ``make`` breaks it."""

    name: str
    what: str
    make: Callable[[], Patch]


MUTANTS: dict[str, Mutant] = {}


def mutant(what: str) -> Callable[[Callable[[], Patch]], Callable[[], Patch]]:
    """Registers a variant."""

    def register(make: Callable[[], Patch]) -> Callable[[], Patch]:
        MUTANTS[make.__name__] = Mutant(make.__name__, what, make)
        return make

    return register


def replaced(owner: Any, name: str, change: Callable[[Any], Any]) -> Patch:
    """An attribute replaced by something made from it."""
    return patch.object(owner, name, change(getattr(owner, name)))


def both(*patches: Patch) -> Patch:
    """Several at once."""

    @contextlib.contextmanager
    def enter() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for each in patches:
                stack.enter_context(each)
            yield

    return enter()


# the intent


@mutant("no intent is written before a call")
def no_intent() -> Patch:
    async def _intend(self: Any, item: Any, event: Any, key: Any, request: Any, *, new_key: bool) -> bool:
        self.session.send_by[item.n] = self.session.time.now_us() + self.session.send_window_us
        return True

    return patch.object(attempt.Caller, "_intend", _intend)


@mutant("the intent is written, but the call does not wait for it")
def intent_not_awaited() -> Patch:
    def wrap(write: Any) -> Any:
        async def wrapped(self: Any, worker: Any, command: Any) -> Any:
            future = self._queue(worker, (command,), None)
            if type(command) is Change:
                return (await future)[0]
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            return Landed.LANDED

        return wrapped

    from payonce.testing.simulator.ledger import SimLedger

    return replaced(SimLedger, "write", wrap)


@mutant("the commit is written before the answer is there")
def commit_before_answer() -> Patch:
    def wrap(_: Any) -> Any:
        async def _send(self: Any, item: Any, key: Any, request: Any) -> Any:
            ledger, worker = self.session.ledger, self.session.worker
            change = Change(item.n, ItemEvent.COMMIT, reference=f"e{item.n}", billed=item.money)
            await ledger.write(worker, change)
            return await original(self, item, key, request)

        return _send

    original = attempt.Caller._send
    return replaced(attempt.Caller, "_send", wrap)


@mutant("a call leaves after its send_by")
def sent_after_send_by() -> Patch:
    def gate(self: Any, send_by_us: int) -> Any:
        return lambda: not self.stop.is_set and self.clock.steady_us() + self.timeout_us <= self.lease_steady_us

    return patch.object(session.Session, "gate", gate)


@mutant("the lease is not looked at before a call leaves")
def lease_not_checked() -> Patch:
    def gate(self: Any, send_by_us: int) -> Any:
        return lambda: not self.stop.is_set and self.time.now_us() < send_by_us

    return patch.object(session.Session, "gate", gate)


@mutant("a stopped run goes on sending what it has an intent for")
def gate_without_stop() -> Patch:
    def gate(self: Any, send_by_us: int) -> Any:
        return lambda: (
            self.time.now_us() < send_by_us and self.clock.steady_us() + self.timeout_us <= self.lease_steady_us
        )

    return patch.object(session.Session, "gate", gate)


# keys


@mutant("the key has the attempt in it")
def key_from_attempt() -> Patch:
    def key(original: Any) -> Any:
        def made(self: Any, item: Any) -> Any:
            plain = original(self, item)
            return plain if plain is None else f"{item.attempts % 100:02d}{plain[2:]}"

        return made

    def again(original: Any) -> Any:
        async def _again(self: Any, intent: Any) -> None:
            item = intent.item
            anew = self.key(item)
            request = self.session.provider.prepare(item, key=anew, step=item.step)
            await original(self, replace(intent, key=anew, request=request))

        return _again

    def send_again(original: Any) -> Any:
        def as_new(desk_: Any, held: Any, command: Any, hold: Any) -> None:
            held.flags |= NO_INTENT
            original(desk_, held, command, hold)

        return as_new

    return both(
        replaced(attempt.Caller, "key", key),
        replaced(attempt.Caller, "_again", again),
        replaced(rules, "_send_again", send_again),
    )


@mutant("a key is sent again after its window")
def key_after_its_window() -> Patch:
    def usable(intent: Any, declaration: Declaration, *, now_us: int) -> bool:
        return declaration.key is not None and intent.key is not None and not intent.burnt and not intent.final

    return both(patch.object(decide, "key_is_usable", usable), patch.object(attempt, "key_is_usable", usable))


@mutant("every repeat starts the key's window anew")
def window_from_last_send() -> Patch:
    def wrap(original: Any) -> Any:
        def usable(intent: Any, declaration: Declaration, *, now_us: int) -> bool:
            return original(replace(intent, first_sent_us=intent.sent_us), declaration, now_us=now_us)

        return usable

    return both(replaced(decide, "key_is_usable", wrap), replaced(attempt, "key_is_usable", wrap))


@mutant("two steps of an item share one key")
def one_key_for_two_steps() -> Patch:
    def wrap(original: Any) -> Any:
        return lambda self, item: original(self, replace(item, step=0))

    return replaced(attempt.Caller, "key", wrap)


@mutant("a new generation without any proof, after every doubt")
def new_key_without_proof() -> Patch:
    def wrap(original: Any) -> Any:
        def after_reply(outcome: Any, **more: Any) -> Any:
            verdict = original(outcome, **more)
            if type(verdict) is Doubt and more["declaration"].key is not None and not more["item"].step:
                return PlanAgain("retry", "once more", new_generation=True)
            return verdict

        return after_reply

    return both(replaced(attempt, "after_reply", wrap))


# look-ups


@mutant("the look-up does not wait for its lag and the longest execution")
def look_up_at_once() -> Patch:
    return patch.object(decide, "quiet_from", lambda intent, declaration: 0)


@mutant("the look-up waits for the longest execution, but not for its lag")
def look_up_without_lag() -> Patch:
    def wrap(original: Any) -> Any:
        def quiet(intent: Any, declaration: Declaration) -> int:
            bare = replace(declaration.lookup, lag_us=0)
            return original(intent, replace(declaration, lookup=bare))

        return quiet

    return replaced(decide, "quiet_from", wrap)


@mutant("a look-up that failed counts as one that found nothing")
def failed_look_up_is_absence() -> Patch:
    from payonce.core.outcome import Found, LookupFailed

    def wrap(original: Any) -> Any:
        async def _ask(self: Any, intent: Any) -> Any:
            reply = await original(self, intent)
            return Found(()) if isinstance(reply, LookupFailed) and not reply.stop else reply

        return _ask

    return replaced(attempt.Caller, "_ask", wrap)


@mutant("a look-up takes somebody else's execution for ours")
def others_are_ours() -> Patch:
    return patch.object(sighting, "_carries_ours", lambda execution, intent: True)


# answers


@mutant("a 500 is taken as refused")
def error_500_is_refused() -> Patch:
    return _answers_as(lambda o: Refused("status_500") if _is(o, "status_500") else o)


@mutant("a broken connection is taken as not executed")
def reset_is_not_executed() -> Patch:
    return _answers_as(lambda o: NotExecuted("reset", load=True) if _is(o, "reset") else o)


@mutant("a timeout is taken as not executed")
def timeout_is_not_executed() -> Patch:
    return _answers_as(lambda o: NotExecuted("timeout", load=True) if _is(o, "timeout") else o)


@mutant("an unreadable answer is taken as executed")
def garbage_is_executed() -> Patch:
    return _answers_as(lambda o: Executed("unreadable") if _is(o, "unreadable") else o)


def _is(outcome: Any, code: str) -> bool:
    return isinstance(outcome, Unresolved) and outcome.code == code and not outcome.burnt


def _answers_as(change: Callable[[Any], Any]) -> Patch:
    def wrap(original: Any) -> Any:
        return lambda outcome, **more: original(change(outcome), **more)

    return replaced(attempt, "after_reply", wrap)


@mutant("a 429 on a repeated call is taken as proof that nothing was executed")
def limited_resend_is_proof() -> Patch:
    def wrap(original: Any) -> Any:
        def after_reply(outcome: Any, **more: Any) -> Any:
            if isinstance(outcome, NotExecuted):
                # and it has no further use for the key it had
                return PlanAgain(
                    outcome.code, outcome.message, load=outcome.load, new_generation=more["declaration"].key is not None
                )
            return original(outcome, **more)

        return after_reply

    return replaced(attempt, "after_reply", wrap)


@mutant("a refusal of a repeated call is taken as the refusal of the first")
def refused_resend_is_refused() -> Patch:
    def wrap(original: Any) -> Any:
        return lambda outcome, **more: original(outcome, **{**more, "resend": more["resend"] and not _no(outcome)})

    return replaced(attempt, "after_reply", wrap)


def _no(outcome: Any) -> bool:
    return isinstance(outcome, Refused | NotExecuted)


@mutant("what no rule can decide is sent again")
def unknown_is_retried() -> Patch:
    def wrap(original: Any) -> Any:
        def next_move(intent: Any, declaration: Declaration, *, attempts: int, now_us: int) -> Any:
            move = original(intent, declaration, attempts=attempts, now_us=now_us)
            return SendAgain(now_us) if isinstance(move, GiveUp) and intent.request is not None else move

        return next_move

    usable = patch.object(attempt, "key_is_usable", lambda intent, declaration, *, now_us: True)
    return both(replaced(attempt, "next_move", wrap), usable)


@mutant("the commit records the amount that was asked")
def asked_amount_committed() -> Patch:
    def wrap(original: Any) -> Any:
        def commit(item: Any, executed: Any, mismatch: Any, common: Any) -> Any:
            return original(item, replace(executed, billed=item.money), None, common)

        return commit

    return replaced(changes, "_commit", wrap)


@mutant("a wrong amount does not stop the run")
def wrong_amount_goes_on() -> Patch:
    return patch.object(changes, "StopBatch", lambda *args, **more: None)


# the ledger


@mutant("a change is taken from any worker")
def fence_not_compared() -> Patch:
    def wrap(original: Any) -> Any:
        def write(self: Any, worker: Any, commands: Any) -> Any:
            found = self._tables.worker(worker.fence)
            left, found.left_us = found.left_us, None
            try:
                return original(self, worker, commands)
            finally:
                found.left_us = left

        return write

    return both(
        patch.object(rules.Author, "owns", lambda self, held: True), replaced(store_items.ItemVerbs, "write", wrap)
    )


@mutant("live workers are taken over too")
def living_are_taken_over() -> Patch:
    return patch.object(store_items.ItemVerbs, "_is_living", lambda self, worker, *, now_us: False)


@mutant("the budget is not looked at in the transaction of the intent")
def budget_outside_the_transaction() -> Patch:
    return patch.object(costs, "over_budget", lambda *_: False)


@mutant("unknown items do not count against the budget")
def unknown_is_free() -> Patch:
    return patch.object(desk, "_COUNTS", (ItemState.COMMITTED, ItemState.PENDING))


@mutant("several items of one target may be under way")
def targets_not_serial() -> Patch:
    from payonce.engine.schedule import Schedule

    def enqueue(self: Any, item: Any) -> None:
        self._owner[item.target] = item.n
        self._ready.append(item)

    def open_up(self: Any, row: Any, opened: Any) -> None:
        self.opens[row.n] = self._opened[row.n] = opened

    def take(original: Any) -> Any:
        def taking(self: Any, rows: Any) -> None:
            original(self, rows)
            self.holders = {}

        return taking

    return both(
        patch.object(Schedule, "_enqueue", enqueue),
        patch.object(desk.Desk, "open_up", open_up),
        replaced(desk.Desk, "take", take),
    )


@mutant("a process starts the batch only where it is alone, and nobody starts it later")
def never_started() -> Patch:
    return patch.object(beside, "_WAITS_FOR_A_START", frozenset())


@mutant("a pause takes no effect on a running process")
def paused_batch_sends() -> Patch:
    def wrap(original: Any) -> Any:
        def intend(desk_: Any, row: Any, command: Any, author: Any) -> Any:
            state, desk_.batch.state = desk_.batch.state, BatchState.RUNNING
            landed = original(desk_, row, command, author)
            desk_.batch.state = state
            return landed

        return intend

    deaf = patch.object(beside.Beside, "paused", property(lambda self: False, lambda self, value: None))
    return both(replaced(rules, "_intend", wrap), deaf)


@mutant("an operator's answer is taken for an item that is committed")
def resolve_over_committed() -> Patch:
    more = {(ItemState.COMMITTED, ItemEvent.NOT_EXECUTED): ItemState.PLANNED,
            (ItemState.COMMITTED, ItemEvent.COMMIT): ItemState.COMMITTED}  # fmt: skip
    return patch.dict(TRANSITIONS, more)


@mutant("a tally is not moved when an item is refused")
def tallies_wrong() -> Patch:
    def wrap(original: Any) -> Any:
        def shift(self: Any, row: Any, before: Any, **more: Any) -> None:
            after = row.state
            original(self, row, before, **more)
            if after is ItemState.REFUSED:
                self.tallies[before[0], before[1]][0] += 1

        return shift

    return replaced(desk.Desk, "shift", wrap)


# faults and endings


@mutant("the spool is not taken in")
def spool_ignored() -> Patch:
    async def nothing(session: Any, spool: Any) -> int:
        return 0

    return both(patch.object(runner, "take_in_spool", nothing), patch.object(beside, "take_in_spool", nothing))


@mutant("a spooled answer is taken for whatever call came last")
def spool_of_any_attempt() -> Patch:
    return patch.object(takein, "_FACTS", frozenset(ItemEvent))


@mutant("an answer that the ledger would not take is dropped")
def nothing_spooled() -> Patch:
    return patch.object(session.Session, "to_spool", lambda self, item, change: None)


@mutant("a ledger fault does not end the run")
def fault_goes_on() -> Patch:
    from payonce.testing.simulator.ledger import SimLedger

    def wrap(original: Any) -> Any:
        def make_durable(self: Any) -> None:
            original(self)
            self.failed = None

        return make_durable

    return both(
        patch.object(session.Session, "halt", lambda self, fault: None), replaced(SimLedger, "_make_durable", wrap)
    )


@mutant("pending items of dead workers are never taken over")
def nobody_takes_over() -> Patch:
    def nothing(self: Any, worker: Any, *, limit: int) -> Any:
        return ()

    return patch.object(store_items.ItemVerbs, "take_over", nothing)


@mutant("an item that comes back is forgotten")
def item_lost() -> Patch:
    return patch.object(store_items.ItemVerbs, "planned", _first_sweep_only(store_items.ItemVerbs.planned))


def _first_sweep_only(original: Any) -> Any:
    def planned(self: Any, worker: Any, *, limit: int) -> Any:
        return tuple(item for item in original(self, worker, limit=limit) if not item.attempts)

    return planned
