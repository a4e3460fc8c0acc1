"""Broken variants: the intent, the door, the keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from payonce.core import decide
from payonce.core.commands import Change, Landed
from payonce.core.model import Declaration
from payonce.core.states import ItemEvent
from payonce.core.verdict import Doubt, PlanAgain
from payonce.engine import attempt, session
from payonce.ledger import effects, rules
from payonce.ledger.rows import NO_INTENT
from payonce.testing.simulator.ledger import SimLedger
from tests.simulation.mutants.registry import Patch, both, mutant, replaced

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


@mutant("what is planned again has its old key")
def generation_not_raised() -> Patch:
    def wrap(original: Any) -> Any:
        return lambda verdict, **more: replace(original(verdict, **more), generation=None)

    def settle(original: Any) -> Any:
        def settling(row: Any, held: Any, change: Any) -> None:
            before = row.generation
            original(row, held, change)
            row.generation = before

        return settling

    return both(replaced(attempt, "change_for", wrap), replaced(effects, "_settle_row", settle))
