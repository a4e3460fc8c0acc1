"""A cheap read of an item's target before anything is sent, described by the batch file.

It sends nothing but reads, and a read that fails is a finding: what could not be checked is not called checked.
"""

from __future__ import annotations

import time
from typing import Any, Final

from payonce.core.model import Item, Request
from payonce.core.money import Money
from payonce.core.outcome import LookupFailed
from payonce.providers import answers_values as values
from payonce.providers.answers_paths import Path, PathError, is_true, optional
from payonce.providers.protocol import Preflight
from payonce.providers.retry_after import parse_retry_after
from payonce.providers.settings import PreflightTable
from payonce.providers.settings_values import bad_setting
from payonce.providers.templates import Context, Names, Template
from payonce.providers.transport import Answer, Fault, Transport, always_open

_PLACE: Final = "[provider.preflight]"


class HttpPreflight:
    """The check of one provider: the target exists, its currency is the item's, what is left covers the amount."""

    def __init__(self, table: PreflightTable, *, names: Names) -> None:
        self._path = Template(table.path, place=f"{_PLACE} path", names=names)
        self._amount = optional(table.amount, place=f"{_PLACE} amount")
        self._used = optional(table.used, place=f"{_PLACE} used")
        self._unit = table.amount_unit
        self._currency = optional(table.currency, place=f"{_PLACE} currency")
        self._refused_when = optional(table.refused_when, place=f"{_PLACE} refused_when")
        self._condition = table.refused_when
        if self._used is not None and self._amount is None:
            raise bad_setting(f"{_PLACE} has used without amount", hint='add amount = "amount"')

    @property
    def templates(self) -> tuple[Template, ...]:
        """Its templates, for checking their placeholders."""
        return (self._path,)

    async def run(self, context: Context, *, transport: Transport, timeout_us: int) -> Preflight:
        """One read. Never raises for what the network or the provider does; raises ConfigError for an item that the
        path's template does not fit."""
        request = Request("GET", self._path.path(context))
        reply = await transport.send(request, timeout_us=timeout_us, gate=always_open)
        if isinstance(reply, Fault):
            return _unread(LookupFailed(reply.code, reply.message, load=reply.load))
        if reply.status in (404, 410):
            return Preflight(False, "no_such_target", "the provider has no such target")
        if reply.status != 200 or reply.truncated:
            return _unread(_failed(reply))
        try:
            return self._judge(values.parse(reply.body), reply, context.item)
        except (ValueError, PathError) as error:
            return _unread(LookupFailed("unreadable_answer", str(error)[:200]))

    def _judge(self, tree: Any, answer: Answer, item: Item) -> Preflight:
        if self._refused_when is not None and is_true(self._refused_when.find(tree, answer)):
            return Preflight(
                False, "target_refused", f"the provider takes nothing for this target now ({self._condition})"
            )
        told = values.text(self._currency.find(tree, answer)) if self._currency else None
        asked = item.money
        if asked is None:
            return Preflight(True)
        if told is not None and told.upper() != asked.currency:
            return Preflight(
                False, "currency_mismatch", f"the target is in {told.upper()}, the item in {asked.currency}"
            )
        total = self._money(self._amount, tree, answer, asked.currency)
        used = self._money(self._used, tree, answer, asked.currency)
        touched = used is not None and used.minor > 0
        if total is None:
            return Preflight(True, touched=touched, taken=used)
        left = total if used is None else total - used
        data = {"left": str(left)}
        if left < asked:
            why = f"{left} is left on the target, the item asks for {asked}"
            return Preflight(False, "over_limit", why, data, already=touched, touched=touched, taken=used)
        return Preflight(True, data=data, touched=touched, taken=used)

    def _money(self, path: Path | None, tree: Any, answer: Answer, currency: str) -> Money | None:
        """An amount of the target's; None where the provider does not tell."""
        raw = path.find(tree, answer) if path else None
        return None if raw is None else values.amount(raw, unit=self._unit, currency=currency)


def _unread(failed: LookupFailed) -> Preflight:
    return Preflight(False, "check_failed", f"the target could not be read: {failed.message}", unread=failed)


def _failed(answer: Answer) -> LookupFailed:
    """An answer that shows no target."""
    limited = answer.status == 429
    wait = parse_retry_after(answer.header("retry-after"), now_us=time.time_ns() // 1000, date=answer.header("date"))
    return LookupFailed(
        "rate_limited" if limited else "answer_too_long" if answer.truncated else f"http_{answer.status}",
        f"status {answer.status}",
        load=limited,
        stop=answer.status in (401, 403),
        retry_after_us=wait.wait_us if wait else None,
    )
