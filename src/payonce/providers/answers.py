"""Classifies answers: the batch file's rules in their order, then the built-in ones, then "it may have happened".

An answer that no rule knows is Unresolved, never Refused and never Executed. Only the answer itself is judged: whether
an earlier call of the item is still open is the engine's business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

from payonce.core.outcome import AlreadyDone, NotExecuted, Outcome, Refused, Stop, Unresolved
from payonce.providers import answers_values as values
from payonce.providers.answers_executed import ExecutionReader, Unsure
from payonce.providers.answers_paths import Path, PathError, is_true, optional
from payonce.providers.http_stream import Stream, StreamCut, is_stream
from payonce.providers.retry_after import parse_retry_after
from payonce.providers.settings import AnswerTable, KeyTable
from payonce.providers.settings_values import bad_setting
from payonce.providers.templates import Context
from payonce.providers.transport import Answer

_CLASS: Final = re.compile(r"([1-5])xx", re.IGNORECASE)
_SLUG: Final = re.compile(r"[A-Za-z0-9_.:-]{1,80}")
# Where most APIs put them; used where a rule does not say.
_CODE_PATHS: Final = ("error.code", "code", "error.type", "error_code", "errorCode", "error")
_MESSAGE_PATHS: Final = ("error.message", "message", "error_description", "detail", "title", "error")
_MESSAGE_LIMIT: Final = 300


@dataclass(slots=True)
class Read:
    """An answer with its parsed body; ``tree`` is None where it does not parse, which ``parsed`` tells from null.

    Frozen by convention, as Answer is."""

    answer: Answer
    tree: Any
    parsed: bool
    retry_after_us: int | None
    replayed: bool
    cut: StreamCut | None = None


class _Rule:
    """One ``[[provider.answers]]`` table, compiled."""

    __slots__ = ("_code", "_message", "_reference", "_statuses", "_when", "table")

    def __init__(self, table: AnswerTable, *, place: str) -> None:
        self.table = table
        if table.status is None and table.when is None:
            raise bad_setting(f"{place} would match every answer", hint="state a status, a when condition, or both")
        self._statuses = None if table.status is None else _statuses(table.status, place)
        self._when = optional(table.when, place=f"{place} when")
        self._code = optional(table.code, place=f"{place} code")
        self._message = optional(table.message, place=f"{place} message")
        self._reference = optional(table.reference, place=f"{place} reference")

    def matches(self, read: Read) -> bool:
        """Whether everything the rule states holds. Raises PathError."""
        if self._statuses is not None and read.answer.status not in self._statuses:
            return False
        return self._when is None or is_true(self._when.find(read.tree, read.answer))

    def code(self, read: Read) -> str:
        """The outcome's code: the rule's expression, else what the body offers, else the status."""
        found = values.text(self._code.find(read.tree, read.answer)) if self._code else None
        return found[:80] if found else guess_code(read)

    def message(self, read: Read) -> str:
        """The outcome's message for people."""
        found = values.text(self._message.find(read.tree, read.answer)) if self._message else None
        return found[:_MESSAGE_LIMIT] if found else guess_message(read)

    def reference(self, read: Read) -> str | None:
        """The reference, where the rule says where it is."""
        return values.reference(self._reference.find(read.tree, read.answer)) if self._reference else None


def _statuses(stated: int | str | list[int], place: str) -> frozenset[int] | range:
    if isinstance(stated, str):
        found = _CLASS.fullmatch(stated)
        if found is None:
            raise bad_setting(f"{place} status is {stated!r}", hint='write 400, [400, 409] or "4xx"')
        return range(int(found[1]) * 100, int(found[1]) * 100 + 100)
    numbers = frozenset([stated] if isinstance(stated, int) else stated)
    if not numbers or any(not 100 <= number <= 599 for number in numbers):
        raise bad_setting(f"{place} status is {stated!r}", hint="HTTP statuses are 100 to 599")
    return numbers


def guess_code(read: Read) -> str:
    """A code out of the places where APIs usually put one, else ``http_STATUS``."""
    for path in _CODE_PATHS_COMPILED:
        found = path.find(read.tree)
        if isinstance(found, str) and _SLUG.fullmatch(found):
            return found
    return f"http_{read.answer.status}"


def guess_message(read: Read) -> str:
    """A message out of the usual places, cut to a length fit for a list; empty where there is none."""
    for path in _MESSAGE_PATHS_COMPILED:
        found = path.find(read.tree)
        if isinstance(found, str) and found.strip():
            return found.strip()[:_MESSAGE_LIMIT]
    return ""


_CODE_PATHS_COMPILED: Final = tuple(Path(text, place="code") for text in _CODE_PATHS)
_MESSAGE_PATHS_COMPILED: Final = tuple(Path(text, place="message") for text in _MESSAGE_PATHS)


class Classifier:
    """All of a provider's knowledge about what its answers mean."""

    def __init__(
        self,
        rules: Sequence[AnswerTable],
        *,
        key: KeyTable | None,
        executions: ExecutionReader,
        stream: Stream | None = None,
        operation: str = "",
    ) -> None:
        self._rules = tuple(
            _Rule(table, place=f"[[provider.answers]] number {n}") for n, table in enumerate(rules, start=1)
        )
        self._replay_header = key.replay_header if key else None
        self._stores_errors = key is not None and key.stores_errors
        self._executions = executions
        self._stream = stream
        self._is_call = operation == "call"

    def read(self, answer: Answer, *, now_us: int) -> Read:
        """The answer with everything that classifying needs."""
        tree: Any = None
        parsed = True
        cut: StreamCut | None = None
        try:
            streamed = self._stream is not None and is_stream(answer)
            tree = self._stream.document(answer) if self._stream and streamed else values.parse(answer.body)
        except StreamCut as broken:
            parsed, cut = False, broken
        except ValueError:
            parsed = False
        wait = None
        if answer.status >= 300:
            wait = parse_retry_after(answer.header("retry-after"), now_us=now_us, date=answer.header("date"))
        replay = answer.header(self._replay_header) if self._replay_header else None
        replayed = replay is not None and replay.lower() not in ("false", "0", "no", "")
        return Read(answer, tree, parsed, wait.wait_us if wait else None, replayed, cut)

    def outcome(self, read: Read, context: Context) -> Outcome:
        """What the answer says of its own call."""
        if read.answer.truncated:
            return Unresolved("answer_too_long", "the answer is longer than the limit, so it was not read to its end")
        if read.cut is not None:
            return Unresolved("stream_cut", str(read.cut), hint_reference=read.cut.reference)
        try:
            for rule in self._rules:
                if rule.matches(read):
                    return self._by_rule(rule, read, context)
            return self._built_in(read, context)
        except PathError as error:
            # A rule that cannot be evaluated might have been the one that says no: nothing after it may say yes.
            return Unresolved("rule_failed", str(error)[:_MESSAGE_LIMIT], retry_after_us=read.retry_after_us)

    def _by_rule(self, rule: _Rule, read: Read, context: Context) -> Outcome:
        table = rule.table
        match table.outcome:
            case "executed":
                return self._executed(read, context, reference=rule.reference(read), ruled=True)
            case "refused":
                return Refused(rule.code(read), rule.message(read))
            case "not_executed":
                load = read.answer.status == 429 if table.load is None else table.load
                return NotExecuted(rule.code(read), rule.message(read), load, read.retry_after_us)
            case "already_done":
                return AlreadyDone(rule.code(read), rule.message(read))
            case "stop":
                may = read.answer.status >= 500 if table.executed is None else table.executed
                return Stop(rule.code(read), rule.message(read), executed=may)
            case "unresolved":
                return Unresolved(
                    rule.code(read),
                    rule.message(read),
                    burnt=table.burnt,
                    in_progress=table.in_progress,
                    final=table.final,
                    retry_after_us=read.retry_after_us,
                    hint_reference=rule.reference(read),
                )
            case _:
                assert_never(table.outcome)

    def _built_in(self, read: Read, context: Context) -> Outcome:
        status = read.answer.status
        if 200 <= status < 300 and isinstance(read.tree, dict) and is_true(read.tree.get("error")):
            # It may have been executed, and billed, before it failed.
            return Unresolved("error_in_answer", guess_message(read), hint_reference=self._executions.named(read.tree))
        if 200 <= status < 300:
            return self._executed(read, context, reference=None, ruled=False)
        code, message = guess_code(read), guess_message(read)
        if status >= 400 and read.replayed and self._stores_errors:
            return Unresolved(code, message or "the provider replays a stored error for this key", burnt=True)
        if status == 429:
            return NotExecuted("rate_limited", message or code, load=True, retry_after_us=read.retry_after_us)
        if status in (401, 403):
            return Stop(code, message)
        if status == 402 and self._is_call:
            # No balance, most likely; some sellers answer so after they were paid.
            return Stop(code, message or "payment required", executed=True)
        if 300 <= status < 400:
            return Unresolved("redirect", "the provider answered with a redirect, which a call does not follow")
        return Unresolved(code, message, retry_after_us=read.retry_after_us)

    def _executed(self, read: Read, context: Context, *, reference: str | None, ruled: bool) -> Outcome:
        if not read.parsed and not ruled:
            return Unresolved("unreadable_answer", "the answer is a success, but not a JSON document")
        try:
            return self._executions.executed(read.tree, read.answer, context=context, reference=reference, ruled=ruled)
        except Unsure as unsure:
            return Unresolved(
                unsure.code,
                str(unsure)[:_MESSAGE_LIMIT],
                final=unsure.final,
                retry_after_us=read.retry_after_us,
                hint_reference=unsure.reference,
            )
