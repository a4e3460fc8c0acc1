"""Python functions as operations: what they return decides, everything else may have happened."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from payonce.core.errors import ConfigError
from payonce.core.money import Money
from payonce.core.outcome import (
    AlreadyDone,
    Executed,
    Execution,
    Found,
    LookupFailed,
    LookupReply,
    NotExecuted,
    Refused,
    Reply,
    Stop,
    Unresolved,
)
from payonce.providers.python import PythonProvider
from payonce.providers.python_operation import Call, operation
from tests.unit.providers.httpkit import KEY, item


class Declined(Exception):
    pass


class NeverSent(Exception):
    pass


def run(
    function: Callable[..., Any],
    *,
    timeout_us: int = 2_000_000,
    gate: Callable[[], bool] = lambda: True,
    threads: int = 2,
) -> Reply:
    async def main() -> Reply:
        provider = PythonProvider(function, operation="refund", batch="b-1", threads=threads)
        await provider.open()
        try:
            request = provider.prepare(item(), key=KEY, step=0)
            return await provider.send(request, item(), key=KEY, timeout_us=timeout_us, gate=gate)
        finally:
            await provider.close()

    return asyncio.run(main())


def look_up(function: Callable[..., Any], **settings: Any) -> LookupReply:
    @operation(lookup=function, **settings)
    def nothing(call: Call) -> Executed:
        return Executed("x")

    async def main() -> LookupReply:
        provider = PythonProvider(nothing, operation="refund", batch="b-1")
        await provider.open()
        try:
            return await provider.lookup(item(), key=KEY, step=0, timeout_us=200_000)
        finally:
            await provider.close()

    return asyncio.run(main())


OUTCOMES = [
    Executed("re_1", billed=Money("1.00", "USD")),
    Refused("no"),
    NotExecuted("later"),
    Unresolved("dunno"),
    AlreadyDone("was"),
    Stop("all"),
]


@pytest.mark.parametrize("wanted", OUTCOMES, ids=lambda o: type(o).__name__)
def test_what_is_returned_is_the_outcome(wanted: Any) -> None:
    """From an async function and from a plain one, which runs in a thread of its own."""

    async def is_async(call: Call) -> Any:
        return wanted

    def plain(call: Call) -> Any:
        assert threading.current_thread() is not threading.main_thread()
        return wanted

    class Callable_:
        async def __call__(self, call: Call) -> Any:
            return wanted

    for function in (is_async, plain, Callable_(), lambda call: is_async(call)):
        reply = run(function)
        assert (reply.outcome, reply.sent) == (wanted, True)


@pytest.mark.parametrize("value", [None, True, "re_1", {"id": "re_1"}, Executed(""), Executed(None)], ids=repr)  # type: ignore[arg-type]
def test_anything_else_may_have_happened(value: Any) -> None:
    """A function that forgets to return an outcome has still been called."""
    assert isinstance(run(lambda call: value).outcome, Unresolved)


def test_an_exception_may_have_happened() -> None:
    """Whatever its name."""

    async def breaks(call: Call) -> Executed:
        raise ConnectionRefusedError("no route to sk_live_1")

    reply = run(breaks)
    assert reply.outcome == Unresolved("exception:ConnectionRefusedError", "no route to sk_live_1")
    assert reply.sent


def test_only_declared_exceptions_prove_that_nothing_happened() -> None:
    """By class, also of subclasses."""

    @operation(refused=(Declined,), not_executed=(NeverSent,))
    def refund(call: Call) -> Executed:
        raise raised

    raised: Exception
    for raised, wanted in (
        (Declined("card"), Refused("exception:Declined", "card")),
        (NeverSent("pool"), NotExecuted("exception:NeverSent", "pool")),
        (ValueError("x"), Unresolved("exception:ValueError", "x")),
        (TimeoutError("own"), Unresolved("exception:TimeoutError", "own")),
    ):
        assert run(refund).outcome == wanted, raised


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_a_call_that_takes_too_long_may_have_happened(kind: str) -> None:
    """It is given up on, not ended."""

    async def slow(call: Call) -> Executed:
        await asyncio.sleep(5)
        return Executed("x")

    def plain(call: Call) -> Executed:
        time.sleep(0.2)
        return Executed("x")

    reply = run(slow if kind == "async" else plain, timeout_us=50_000)
    assert isinstance(reply.outcome, Unresolved)
    assert (reply.outcome.code, reply.sent) == ("timeout", True)


def test_a_closed_gate_is_never_passed() -> None:
    """The function is not entered."""
    entered = []
    for function in (entered.append, lambda call: entered.append(call)):
        reply = run(function, gate=lambda: False)
        assert (reply.outcome, reply.sent) == (NotExecuted("not_sent", "the call was held back"), False)
    assert entered == []


def test_a_call_that_never_got_a_thread_was_not_made_and_never_will_be() -> None:
    """The one thread is busy: the second call is surely not executed, now or later."""
    entered: list[str] = []

    def slow(call: Call) -> Executed:
        entered.append(call.item.id)
        time.sleep(0.15)
        return Executed("x")

    async def main() -> None:
        provider = PythonProvider(slow, operation="refund", batch="b-1", threads=1)
        await provider.open()
        request = provider.prepare(item(), key=None, step=0)
        first = asyncio.ensure_future(provider.send(request, item(), key=None, timeout_us=2_000_000, gate=lambda: True))
        await asyncio.sleep(0.03)
        second = await provider.send(request, item(), key=None, timeout_us=30_000, gate=lambda: True)
        assert isinstance(second.outcome, NotExecuted)
        assert (second.outcome.load, second.sent) == (True, False)
        assert isinstance((await first).outcome, Executed)
        await asyncio.sleep(0.02)
        await provider.close()

    asyncio.run(main())
    assert entered == ["r-1"]


def test_what_a_call_knows() -> None:
    """Item, key, money, generation, attempt, batch; the key only where keys are promised."""
    seen: list[Call] = []

    @operation(key=True, retention="24h", account="acct", mode="test")
    async def with_key(call: Call) -> Executed:
        seen.append(call)
        return Executed("x")

    async def without(call: Call) -> Executed:
        seen.append(call)
        return Executed("x")

    run(with_key)
    run(without)
    assert (seen[0].key, seen[0].money, seen[0].batch, seen[0].attempt, seen[0].generation) == (
        KEY,
        Money("12.50", "USD"),
        "b-1",
        1,
        0,
    )
    assert seen[1].key is None
    with pytest.raises(ConfigError):
        _ = Call(item(money=None), None, "b").money


def test_what_a_decorator_promises_is_declared() -> None:
    """And nothing is promised without one."""

    @operation(key=True, retention="24h", key_format="uuid", stores_errors=True, lookup=lambda call: [], lag="5s")
    async def refund(call: Call) -> Executed:
        return Executed("x")

    declaration = PythonProvider(refund, operation="refund", batch="b").declaration
    assert declaration.key is not None
    assert (declaration.key.retention_us, declaration.key.format.name) == (86_400_000_000, "uuid")
    assert declaration.lookup is not None
    assert (declaration.lookup.lag_us, declaration.max_execution_us) == (5_000_000, 30_000_000)
    hasty = PythonProvider(operation(key=True)(lambda call: None), operation="refund", batch="b").declaration
    assert hasty.key is not None
    assert hasty.key.retention_us == 3_600_000_000
    bare = PythonProvider(lambda call: None, operation="refund", batch="b").declaration
    assert (bare.key, bare.lookup, bare.max_execution_us) == (None, None, 60_000_000)


@pytest.mark.parametrize(
    "settings",
    [{"retention": "24h"}, {"key": True, "retention": "1"}, {"lag": "5"}, {"timeout": "soon"}],
)
def test_promises_that_do_not_fit_together(settings: dict[str, Any]) -> None:
    """Said where the decorator stands."""
    with pytest.raises(ConfigError):
        operation(**settings)


def test_keys_of_unknown_retention_are_trusted_for_the_shortest_published_time() -> None:
    """A promise of keys without a time counts for an hour."""

    @operation(key=True)
    async def refund(call: Call) -> Executed:
        return Executed("x")

    declaration = PythonProvider(refund, operation="refund", batch="b").declaration
    assert declaration.key is not None
    assert declaration.key.retention_us == 3_600_000_000


def test_look_ups_of_all_kinds() -> None:
    """Async or plain, a list or Found."""
    one = Execution("re_1", Money("12.50", "USD"), own_reference="r-1")

    async def is_async(call: Call) -> Any:
        return [one]

    assert look_up(is_async) == Found((one,))
    assert look_up(lambda call: (one,)) == Found((one,))
    assert look_up(lambda call: Found(())) == Found(())
    assert look_up(lambda call: LookupFailed("busy")) == LookupFailed("busy")


@pytest.mark.parametrize("result", [None, "x", [1], {"id": 1}], ids=repr)
def test_a_look_up_that_returns_something_else_has_failed(result: Any) -> None:
    """An absence is never concluded from it."""
    assert isinstance(look_up(lambda call: result), LookupFailed)


def test_a_look_up_that_raises_or_hangs_has_failed() -> None:
    """Within its time."""

    def breaks(call: Call) -> Any:
        raise ValueError("no")

    async def hangs(call: Call) -> Any:
        await asyncio.sleep(5)

    assert look_up(breaks) == LookupFailed("exception:ValueError", "no")
    hung = look_up(hangs)
    assert isinstance(hung, LookupFailed)
    assert hung.code == "timeout"


def test_what_cannot_be_marked_is_named() -> None:
    """A bound method takes no mark: an error that says what to do, no AttributeError."""

    class Desk:
        def pay(self, call: Call) -> Executed:
            return Executed("re_1")

    with pytest.raises(ConfigError) as error:
        operation(key=True)(Desk().pay)
    assert "function" in error.value.hint
