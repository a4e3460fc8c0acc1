"""Look-ups over HTTP: asks what was executed on an item's target, over all pages, or says that it could not be told.

A short list is worse than none: it would prove an absence that is not there. Anything but well-formed 200 answers up to
the last page is LookupFailed.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any, Final
from urllib.parse import quote, urlsplit

from payonce.core.model import LookupDeclaration, Request
from payonce.core.outcome import Execution, Found, LookupFailed, LookupReply
from payonce.core.states import Settlement
from payonce.providers import answers_values as values
from payonce.providers.answers_executed import ExecutionReader, Kept, StatusMap, cost_of
from payonce.providers.answers_paths import Path, PathError, is_true, optional
from payonce.providers.lookups_answer import AnswerAgain
from payonce.providers.retry_after import parse_retry_after
from payonce.providers.settings import LookupTable
from payonce.providers.settings_values import bad_setting
from payonce.providers.templates import Context, Names, Template
from payonce.providers.transport import Answer, Fault, Transport, always_open

_PLACE: Final = "[provider.lookup]"


class UnreadablePage(Exception):
    """An answer that does not tell; the look-up has failed."""


class Entries:
    """How one page's entries show executions: the expressions of ``[provider.lookup]``, compiled."""

    def __init__(self, table: LookupTable, *, returns_output: bool) -> None:
        self._found = Path(table.found, place=f"{_PLACE} found")
        self._reference = Path(table.reference, place=f"{_PLACE} reference")
        self._amount = optional(table.amount, place=f"{_PLACE} amount")
        self._unit = table.amount_unit
        self._rounding = table.amount_rounding
        self._currency = optional(table.currency, place=f"{_PLACE} currency")
        self._time = optional(table.time, place=f"{_PLACE} time")
        self._own = optional(table.own_reference, place=f"{_PLACE} own_reference")
        self._key = optional(table.key, place=f"{_PLACE} key")
        self._kept = Kept(table.keep, place=_PLACE)
        output = table.output if table.output is not None else ("@" if returns_output else None)
        self._output = optional(output, place=f"{_PLACE} output")
        self._status = StatusMap(
            table.status,
            pending=table.status_pending,
            succeeded=table.status_succeeded,
            failed=table.status_failed,
            place=_PLACE,
        )

    def of(self, tree: Any, answer: Answer, *, context: Context) -> list[Execution]:
        """A page's executions. Raises UnreadablePage for a page that is not what the settings describe."""
        entries = self._found.find(tree, answer)
        if isinstance(entries, dict):
            entries = [entries]
        if not isinstance(entries, list):
            raise UnreadablePage(f"{self._found.place} leads to no list")
        return [self._execution(entry, answer, context=context) for entry in entries]

    def _execution(self, entry: Any, answer: Answer, *, context: Context) -> Execution:
        reference = values.reference(self._reference.find(entry, answer))
        if reference is None:
            raise UnreadablePage(f"{self._reference.place} leads to no reference in an entry")
        settlement, _ = self._status.of(entry, answer)
        moment = self._time.find(entry, answer) if self._time else None
        asked = context.item.money
        told = values.text(self._currency.find(entry, answer)) if self._currency else None
        currency = told or (asked.currency if asked else None)
        raw = self._amount.find(entry, answer) if self._amount else None
        cost = None
        if raw is not None and currency is not None:
            cost = cost_of(raw, unit=self._unit, currency=currency, rounding=self._rounding)
        kept = self._kept.of(entry, answer)
        return Execution(
            reference=reference,
            money=cost.money if cost else None,
            own_reference=values.text(self._own.find(entry, answer)) if self._own else None,
            key=values.text(self._key.find(entry, answer)) if self._key else None,
            at_us=None if moment is None else values.time_us(moment),
            settlement=settlement,
            failed=settlement is Settlement.FAILED,
            kept={**kept, **cost.kept} if cost else kept,
            output=values.jsonable(self._output.find(entry, answer)) if self._output else None,
        )


class Pages:
    """How one page leads to the next."""

    def __init__(self, table: LookupTable, *, base_url: str) -> None:
        self._next = optional(table.next, place=f"{_PLACE} next")
        self._more = optional(table.more, place=f"{_PLACE} more")
        self._cursor = table.cursor_param
        if self._next is None and (self._more is not None or self._cursor is not None):
            raise bad_setting(f"{_PLACE} has paging without next", hint='add next = "..." (a JMESPath)')
        if table.max_pages < 1:
            raise bad_setting(f"{_PLACE} max_pages is {table.max_pages}", hint="at least 1")
        self._base = base_url
        self.limit = table.max_pages

    def after(self, tree: Any, answer: Answer, *, first_path: str) -> str | None:
        """The path of the page after this one; None after the last. Raises UnreadablePage for an address elsewhere."""
        if self._next is None or (self._more is not None and not is_true(self._more.find(tree, answer))):
            return None
        found = values.text(self._next.find(tree, answer))
        if found is None:
            if self._more is not None:
                raise UnreadablePage(f"{_PLACE} more says that there is a next page, next does not lead to it")
            return None
        if self._cursor is not None:
            return f"{first_path}{'&' if '?' in first_path else '?'}{self._cursor}={quote(found, safe='')}"
        return self._own_path(found)

    def _own_path(self, address: str) -> str:
        """An address as a path of ours: credentials go with every request, so never to another server."""
        base = urlsplit(self._base)
        parts = urlsplit(address)
        elsewhere = parts.netloc and (parts.scheme, parts.netloc) != (base.scheme, base.netloc)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        # An absolute path repeats the base's own path; requests are relative to that.
        if path.startswith(base.path):
            path = path[len(base.path) :]
        if elsewhere or not path.startswith("/"):
            raise UnreadablePage("the next page is not at this provider's address")
        return path


class HttpLookup:
    """The look-up of one provider."""

    def __init__(
        self,
        table: LookupTable,
        *,
        base_url: str,
        names: Names,
        batch: str,
        returns_output: bool,
        executions: ExecutionReader | None = None,
    ) -> None:
        self._path = Template(table.path, place=f"{_PLACE} path", names=names)
        self._entries = Entries(table, returns_output=returns_output and table.answer_path is None)
        self._again: AnswerAgain | None = None
        if table.answer_path is not None and executions is not None:
            self._again = AnswerAgain(table.answer_path, names=names, executions=executions)
        self._pages = Pages(table, base_url=base_url)
        self._none_if_missing = table.not_found_means_none
        self._batch = batch
        self.declaration = LookupDeclaration(
            by=table.path.partition("?")[0],
            lag_us=int(table.lag),
            own_reference=table.own_reference is not None,
            key=table.key is not None,
        )

    @property
    def templates(self) -> tuple[Template, ...]:
        """Its templates, for checking their placeholders."""
        return (self._path, *((self._again.template,) if self._again is not None else ()))

    async def run(self, context: Context, *, transport: Transport, timeout_us: int) -> LookupReply:
        """All pages within ``timeout_us`` together. Never raises for what the network or the provider does."""
        first = self._path.path(context)
        path: str | None = first
        seen: list[Execution] = []
        asked: set[str] = set()
        bodies: list[bytes] = []
        deadline_us = time.monotonic_ns() // 1000 + timeout_us
        while path is not None:
            if path in asked or len(asked) >= self._pages.limit:
                return LookupFailed("too_many_pages", f"the list did not end within {len(asked)} pages")
            asked.add(path)
            left_us = deadline_us - time.monotonic_ns() // 1000
            reply = await transport.send(Request("GET", path), timeout_us=max(left_us, 1), gate=always_open)
            failed = self._failure(reply, first=not bodies)
            if isinstance(failed, LookupFailed) or isinstance(reply, Fault):
                return failed or LookupFailed("network_error")
            if reply.status == 404:
                break
            bodies.append(reply.body)
            try:
                tree = values.parse(reply.body)
                seen += self._entries.of(tree, reply, context=context)
                path = self._pages.after(tree, reply, first_path=first)
            except (UnreadablePage, PathError, ValueError) as error:
                return LookupFailed("unreadable_answer", str(error)[:300])
        if self._again is not None and seen:
            whole = await self._again.complete(
                seen, context, transport=transport, deadline_us=deadline_us, failing=self._failing
            )
            if isinstance(whole, LookupFailed):
                return whole
            seen = whole
        return Found(_oldest_first(seen), status=200 if bodies else 404, response=b"\n".join(bodies))

    def _failing(self, reply: Answer | Fault) -> LookupFailed | None:
        return self._failure(reply, first=False)

    def _failure(self, reply: Answer | Fault, *, first: bool) -> LookupFailed | None:
        if isinstance(reply, Fault):
            return LookupFailed(reply.code, reply.message, load=reply.load)
        if reply.truncated:
            return LookupFailed("answer_too_long", "the answer is longer than the limit")
        # A page that is missing later on is no empty list: it would make a short one.
        if reply.status == 200 or (reply.status == 404 and self._none_if_missing and first):
            return None
        wait = parse_retry_after(reply.header("retry-after"), now_us=time.time_ns() // 1000, date=reply.header("date"))
        return LookupFailed(
            "rate_limited" if reply.status == 429 else f"http_{reply.status}",
            f"the look-up was answered with {reply.status}",
            load=reply.status == 429,
            stop=reply.status in (401, 403),
            retry_after_us=wait.wait_us if wait else None,
        )


def _oldest_first(executions: list[Execution]) -> tuple[Execution, ...]:
    """By time where every entry tells one; otherwise in the provider's own order. Of those at one time the first is the
    one that the list's direction says; a list of one time only begins with the newest, as most do."""
    moments = [execution.at_us for execution in executions if execution.at_us is not None]
    if len(moments) != len(executions):
        return tuple(executions)
    rises = sum((after > before) - (after < before) for before, after in pairwise(moments))
    listed = executions if rises > 0 else executions[::-1]
    return tuple(sorted(listed, key=lambda execution: execution.at_us or 0))
