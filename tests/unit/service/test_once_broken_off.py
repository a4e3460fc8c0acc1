"""Guarded calls that an exception breaks off anywhere on their way in and out, as a signal's handler may raise it.

Python lets a handler run after a call, at the start of a function and at a loop's jump back, and nowhere else: those places
are gone through one by one.
"""

from __future__ import annotations

import dis
import json
import signal
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import payonce
from payonce.core.states import ItemState
from payonce.ledger.connect import connect
from payonce.service.single import Once
from payonce.service.single_desk import desk_of

TEN = payonce.Money("10.00", "USD")
# The files that are gone through; what they call below is SQLite, which no handler breaks off, and pure computing.
TRIED = ("/service/single", "/ledger/store", "/ledger/sqlite", "/ledger/desk.py", "/ledger/place.py", "/api.py")
PLACES = frozenset({"RESUME", "CALL", "CALL_FUNCTION_EX", "JUMP_BACKWARD", "SEND"})
# Each place costs a ledger opened anew.
EVERY = pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.lengthy)])


class BrokenOff(Exception):
    """What a handler raises, as a task queue's time limit does."""


@pytest.fixture
def ledger(tmp_path: Path) -> str:
    """A new ledger's address, used once, so that nothing has to be loaded or joined any more."""
    address = f"sqlite:{tmp_path / 'payonce.db'}"
    with guard(address, "warm", key=False) as call:
        call.executed("tr_warm")
    return address


def guard(ledger: str, item: str, *, key: bool) -> Once:
    """A guarded call."""
    return payonce.once(ledger, batch="payouts", item=item, money=TEN, key=key)


@cache
def places(code: CodeType) -> dict[int, int]:
    """The offsets in a function behind the instructions after which a handler may run, with their lines."""
    handlers = dis._parse_exception_table(code)  # type: ignore[attr-defined]

    def handler(offset: int) -> int | None:
        return next((h.target for h in handlers if h.start <= offset < h.end), None)

    found: dict[int, int] = {}
    before = None
    for instruction in dis.get_instructions(code):
        # Where the next instruction has another handler, raising there would not be what a signal does.
        if before is not None and before.opname in PLACES and handler(before.offset) == handler(instruction.offset):
            found[instruction.offset] = instruction.positions.lineno or 0 if instruction.positions else 0
        before = instruction
    return found


def broken_off(at: int, act: Callable[[], Any]) -> str | None:
    """Does something and raises at the ``at``-th different place; its file and line, or None if there are fewer."""
    seen: set[tuple[CodeType, int]] = set()
    broke: list[str] = []

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if event == "call":
            if not any(part in code.co_filename.replace("\\", "/") for part in TRIED):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode" and frame.f_lasti in places(code) and (code, frame.f_lasti) not in seen:
            seen.add((code, frame.f_lasti))
            if len(seen) == at:
                broke.append(f"{Path(code.co_filename).name}:{places(code)[frame.f_lasti]} {code.co_name}")
                raise BrokenOff
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except BrokenOff:
        return broke[0]
    finally:
        sys.settrace(before)
    assert not broke, f"{broke[0]} swallowed it"
    return None


def pay(ledger: str, item: str, paid: list[str], *, key: bool) -> None:
    """One guarded payment to its end."""
    with guard(ledger, item, key=key) as call:
        if not call.done:
            paid.append(item)
            call.executed(f"tr_{item}")


def left(at: int, once: Once) -> str | None:
    """Enters and reports; is broken off on the way out."""
    call = once.__enter__()
    call.executed(f"tr_{call.item.id}")
    return broken_off(at, lambda: once.__exit__(None, None, None))


def every_place(act: Callable[[int], str | None], *, step: int, lowest: int) -> None:
    """Goes on until there is no further place; there must be as many as the way is known to have at least."""
    at = 1
    while act(at) is not None:
        at += step
    assert at > lowest, f"only {at} places were there"


def looked_at(ledger: str) -> None:
    """The ledger is whole: tallies, trail, index."""
    store = connect(ledger, create=False, read_only=True)
    try:
        assert store.check() == ()
    finally:
        store.close()


@EVERY
def test_on_the_way_in(ledger: str, step: int) -> None:
    """The body was not entered, so the next entry may pay, even without a key; and it finds nobody in its way."""

    def one(at: int) -> str | None:
        paid: list[str] = []
        where = broken_off(at, lambda: guard(ledger, f"i{at}", key=False).__enter__())
        if where is not None:
            pay(ledger, f"i{at}", paid, key=False)
            assert paid == [f"i{at}"], where
        return where

    every_place(one, step=step, lowest=200)
    looked_at(ledger)


@EVERY
def test_on_the_way_out(ledger: str, step: int) -> None:
    """What the body reported is recorded all the same, once; only before the first line of the way out is it as a crash
    would leave it: pending, and never paid again without a key."""
    first: list[str] = []

    def one(at: int) -> str | None:
        item = f"o{at}"
        where = left(at, guard(ledger, item, key=False))
        found = desk_of(ledger).call(lambda desk: desk.item("payouts", item))
        assert found is not None
        if where is not None and found.state is not ItemState.COMMITTED:
            first.append(where)
            with pytest.raises(payonce.ItemUnknown), guard(ledger, item, key=False):
                pytest.fail(f"{where}: the body was entered again")
        elif where is not None:
            assert found.reference == f"tr_{item}", where
            store = desk_of(ledger).store
            assert [json.loads(e.body)["type"] for e in store.events("payouts", item=item)] == ["intent", "commit"], (
                where
            )
        return where

    every_place(one, step=step, lowest=120)
    assert len(first) <= 2, first
    looked_at(ledger)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no interval timers")
def test_by_a_real_signal(ledger: str) -> None:
    """A timer's handler raises now and then while payments are guarded: none is made twice without its key, none is lost."""
    keys: dict[str, set[str | None]] = {}
    broken = 0

    def handler(number: int, frame: FrameType | None) -> None:
        raise BrokenOff

    def paid(item: str) -> None:
        with guard(ledger, item, key=True) as call:
            if not call.done:
                keys.setdefault(item, set()).add(call.key)
                call.executed(f"tr_{item}")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for k in range(90):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.00003 * (k + 1))
                paid(f"s{k}")
                signal.setitimer(signal.ITIMER_REAL, 0)
            except BrokenOff:
                broken += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    for k in range(90):
        paid(f"s{k}")
    assert broken
    assert set(keys) == {f"s{k}" for k in range(90)}
    assert all(len(used) == 1 for used in keys.values())
    looked_at(ledger)
