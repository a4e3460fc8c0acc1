"""Reading the whole answer of one execution again: what was paid for need not be lost with the connection.

A look-up through a usage log proves that a call was executed and tells what it cost; what it returned may be had from
another address. One that the provider does not have any more is no failure: the execution stands, without an output.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Protocol
from urllib.parse import quote

from payonce.core.model import Request
from payonce.core.outcome import Executed, Execution, LookupFailed
from payonce.core.states import ItemState
from payonce.providers import answers_values as values
from payonce.providers.answers_executed import ExecutionReader, Unsure
from payonce.providers.answers_paths import PathError
from payonce.providers.settings_values import bad_setting
from payonce.providers.templates import Context, Names, Template
from payonce.providers.transport import Answer, Fault, Transport, always_open

_PLACE: Final = "[provider.lookup] answer_path"
_REFERENCE: Final = "{reference}"
# Gone for good: nothing will bring the answer back.
_GONE: Final = (404, 410)


class Failing(Protocol):
    """Turns an answer that does not tell into a failed look-up; None where it tells."""

    def __call__(self, reply: Answer | Fault) -> LookupFailed | None: ...


class AnswerAgain:
    """How an answer is read again. ``executions`` reads it exactly as it would have read the first one."""

    def __init__(self, path: str, *, names: Names, executions: ExecutionReader) -> None:
        if _REFERENCE not in path:
            raise bad_setting(f"{_PLACE} does not hold {_REFERENCE}", hint='write it like "/v1/calls/{reference}"')
        self._path = path
        self._names = names
        self._executions = executions
        self.template = self._template("reference")

    def _template(self, reference: str) -> Template:
        return Template(self._path.replace(_REFERENCE, quote(reference, safe="")), place=_PLACE, names=self._names)

    async def complete(
        self, found: Sequence[Execution], context: Context, *, transport: Transport, deadline_us: int, failing: Failing
    ) -> list[Execution] | LookupFailed:
        """The executions, those that may be the item's own with what their answer says: output, cost, kept fields."""
        if context.item.state is ItemState.COMMITTED:
            return list(found)  # it is only compared: its answer is in the ledger already
        done: list[Execution] = []
        for execution in found:
            foreign = execution.own_reference is not None and execution.own_reference != context.item.id
            if foreign or execution.failed:
                done.append(execution)
                continue
            left_us = max(deadline_us - time.monotonic_ns() // 1000, 1)
            request = Request("GET", self._template(execution.reference).path(context))
            reply = await transport.send(request, timeout_us=left_us, gate=always_open)
            if isinstance(reply, Answer) and reply.status in _GONE:
                done.append(execution)
                continue
            failed = failing(reply)
            if failed is not None:
                return failed
            assert isinstance(reply, Answer), "a fault is a failure"
            read = self._read(execution, reply, context)
            if isinstance(read, LookupFailed):
                return read
            done.append(read)
        return done

    def _read(self, execution: Execution, reply: Answer, context: Context) -> Execution | LookupFailed:
        try:
            tree: Any = values.parse(reply.body)
            said = self._executions.executed(tree, reply, context=context, reference=execution.reference, ruled=True)
        except (ValueError, PathError, Unsure) as error:
            return LookupFailed("unreadable_answer", f"the answer read again: {error}"[:300])
        if not isinstance(said, Executed):
            return execution
        return replace(
            execution,
            money=execution.money or said.billed,
            kept={**said.kept, **execution.kept},
            output=said.output,
        )
