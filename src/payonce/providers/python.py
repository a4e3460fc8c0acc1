"""The provider around a Python function: async, or plain and then in a bounded pool of threads.

What the function returns decides; whatever else happens in it (an exception, a timeout, another return value) means
that the call may have had its effect.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import hashlib
import inspect
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from payonce.core.model import Declaration, Item, Request
from payonce.core.outcome import (
    AlreadyDone,
    Executed,
    Execution,
    Found,
    LookupFailed,
    LookupReply,
    NotExecuted,
    Outcome,
    Refused,
    Reply,
    Stop,
    Unresolved,
)
from payonce.providers.protocol import Gate, Identity, Preflight
from payonce.providers.python_operation import Call, Operation, OperationSettings, settings_of

_OUTCOMES: Final = (Executed, Refused, NotExecuted, Unresolved, AlreadyDone, Stop)
_MESSAGE_LIMIT: Final = 300


class PythonProvider:
    """See protocol.Provider. ``redact`` takes secrets out of exception messages."""

    def __init__(
        self,
        function: Operation,
        *,
        operation: str,
        batch: str,
        threads: int = 64,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._function = function
        self._settings: OperationSettings = settings_of(function)
        self._batch = batch
        self._threads = threads
        self._redact = redact
        self._pool: ThreadPoolExecutor | None = None
        self._declaration = self._settings.declaration(operation)

    @property
    def declaration(self) -> Declaration:
        """What the operation's decorator promises."""
        return self._declaration

    @property
    def provider_digest(self) -> str:
        """SHA-256 over the function's name and its promises about keys: the code itself may be corrected."""
        name = f"{self._function.__module__}:{getattr(self._function, '__qualname__', '?')}"
        facts = f"{name}\n{self._settings.key}\n{self._settings.account}\n{self._settings.mode}"
        return hashlib.sha256(facts.encode()).hexdigest()

    async def open(self) -> None:
        """Makes the threads' pool."""
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="payonce-call")

    async def close(self) -> None:
        """Gives up the pool. A thread whose call timed out cannot be ended; it is left to itself."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    async def identify(self) -> Identity:
        """As the decorator says."""
        return Identity(self._settings.account, self._settings.mode)

    def prepare(self, item: Item, *, key: str | None, step: int) -> Request:
        """A request that names the function; the function itself builds what goes out."""
        assert step == 0, "an operation has one step"
        return Request("CALL", f"{self._function.__module__}:{getattr(self._function, '__qualname__', '?')}")

    async def send(self, request: Request, item: Item, *, key: str | None, timeout_us: int, gate: Gate) -> Reply:
        """Calls the function once. Never raises for what it does."""
        started_us = time.time_ns() // 1000
        call = Call(item, key if self._settings.key else None, self._batch, attempt=max(item.attempts, 1))
        outcome, sent = await self._outcome(call, timeout_us, gate)
        return Reply(outcome, sent=sent, started_us=started_us, ended_us=time.time_ns() // 1000)

    async def _outcome(self, call: Call, timeout_us: int, gate: Gate) -> tuple[Outcome, bool]:
        entered = _Entered(gate)
        limit = asyncio.timeout(timeout_us / 1e6)
        try:
            async with limit:
                result = await self._invoke(self._function, call, entered)
        except _Held:
            return NotExecuted("not_sent", "the call was held back"), False
        except Exception as error:
            if entered.give_up():
                # It waited for a free thread all the while: the function never began, and now never will.
                return NotExecuted("connect_timeout", f"no thread was free{self._said(error)}", load=True), False
            if limit.expired():
                return Unresolved("timeout", f"no result within {timeout_us // 1000} ms{self._said(error)}"), True
            return self._raised(error), True
        return self._returned(result), True

    def _raised(self, error: Exception) -> Outcome:
        code = f"exception:{type(error).__name__}"
        message = self._redact(str(error))[:_MESSAGE_LIMIT]
        if isinstance(error, self._settings.refused):
            return Refused(code, message)
        if isinstance(error, self._settings.not_executed):
            return NotExecuted(code, message)
        return Unresolved(code, message)

    def _said(self, error: BaseException) -> str:
        text = self._redact(str(error))[:_MESSAGE_LIMIT]
        return f": {text}" if text else ""

    def _returned(self, result: Any) -> Outcome:
        if not isinstance(result, _OUTCOMES):
            kind = type(result).__name__
            return Unresolved("no_outcome", f"the function returned {kind}, not an outcome such as payonce.Executed")
        if isinstance(result, Executed) and not (isinstance(result.reference, str) and result.reference):
            return Unresolved("no_reference", "the function returned Executed without a reference")
        return result

    async def _invoke(self, function: Callable[[Call], Any], call: Call, entered: _Entered) -> Any:
        if _is_async(function):
            entered.enter()
            return await function(call)
        assert self._pool is not None, "the provider is not open"
        # What the caller's context holds (a trace, a tenant) holds in the thread too.
        work = functools.partial(contextvars.copy_context().run, _in_thread, function, call, entered)
        result = await asyncio.get_running_loop().run_in_executor(self._pool, work)
        return await result if inspect.isawaitable(result) else result

    async def lookup(self, item: Item, *, key: str | None, step: int, timeout_us: int) -> LookupReply:
        """Calls the look-up function. Anything but a list of executions (or Found) means that it failed."""
        function = self._settings.lookup
        assert function is not None, "the declaration has no look-up"
        call = Call(item, key if self._settings.key else None, self._batch, attempt=max(item.attempts, 1))
        try:
            async with asyncio.timeout(timeout_us / 1e6):
                result = await self._invoke(function, call, _Entered(lambda: True))
        except TimeoutError:
            return LookupFailed("timeout", f"no result within {timeout_us // 1000} ms")
        except Exception as error:
            return LookupFailed(f"exception:{type(error).__name__}", self._redact(str(error))[:_MESSAGE_LIMIT])
        if isinstance(result, LookupFailed):
            return result
        found = result.executions if isinstance(result, Found) else result
        if not isinstance(found, list | tuple) or not all(isinstance(entry, Execution) for entry in found):
            kind = type(result).__name__
            return LookupFailed("no_list", f"the look-up returned {kind}, not a list of payonce.Execution")
        return result if isinstance(result, Found) else Found(tuple(found))

    async def preflight(self, item: Item, *, timeout_us: int) -> Preflight | None:
        """None."""
        return None


class _Held(Exception):
    """The gate said no."""


class _Entered:
    """Whether the function was entered: the place where a call counts as sent. Decided once, whichever thread asks."""

    __slots__ = ("_gate", "_given_up", "_lock", "_yes")

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._yes = False
        self._given_up = False
        self._lock = threading.Lock()

    def enter(self) -> None:
        """Asks the gate, and marks. Raises _Held where the function must not be entered any more."""
        with self._lock:
            if self._given_up or not self._gate():
                raise _Held
            self._yes = True

    def give_up(self) -> bool:
        """Sees to it that the function is not entered any more; False if it was."""
        with self._lock:
            self._given_up = not self._yes
            return self._given_up


def _in_thread(function: Callable[[Call], Any], call: Call, entered: _Entered) -> Any:
    entered.enter()
    return function(call)


def _is_async(function: Callable[..., Any]) -> bool:
    call = type(function).__call__  # of an object that is callable
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)
