"""Stripe's own account of what it did, straight from its API: whole lists, checked page by page. Reads only.

The rows are Stripe's objects as they are; ``payonce reconcile`` knows both forms. Balance transactions
(https://docs.stripe.com/api/balance_transactions/list) tell the money, with their source expanded for its metadata;
refunds tell the refunds alone, and are there at once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, Literal

from payonce.core.errors import PayonceError, UsageError
from payonce.core.model import SECOND_US, Request
from payonce.providers.official.adapter import NoAnswer
from payonce.providers.official.values import Unreadable
from payonce.providers.stripe.calls import PAGE, StripeCalls
from payonce.providers.stripe.lookup import StripeLookup

Kind = Literal["refunds", "balance"]
_MOST_PAGES: Final = 100_000
_LONGEST_US: Final = 6 * 3600 * SECOND_US


class StripeStatement:
    """Lists of one account. ``page_timeout_us`` bounds each page's read."""

    def __init__(self, calls: StripeCalls, lists: StripeLookup, *, page_timeout_us: int) -> None:
        self._calls = calls
        self._lists = lists
        self._page_timeout_us = page_timeout_us

    async def rows(self, kind: Kind, *, from_us: int | None, to_us: int | None) -> list[Mapping[str, Any]]:
        """All rows created in a period (to the second, end left out), oldest first: every page, each row once.

        Raises UsageError ``statement_unread`` where the list could not be read to its end, is not in order, or shows
        rows outside the period: a list that does not add up proves nothing.
        """
        period = _period(from_us, to_us)
        try:
            newest_first = await self._lists.pages(
                lambda after: self._page(kind, period, after),
                deadline_us=time.monotonic_ns() // 1000 + _LONGEST_US,
                page_timeout_us=self._page_timeout_us,
                limit=_MOST_PAGES,
            )
        except NoAnswer as error:
            raise _unread(error.failed.message) from error
        except Unreadable as error:
            raise _unread(str(error)) from error
        _check(newest_first, period)
        return newest_first[::-1]

    def _page(self, kind: Kind, period: dict[str, int], after: str | None) -> Request:
        query: dict[str, Any] = {"limit": PAGE}
        if period:
            query["created"] = period
        if after is not None:
            query["starting_after"] = after
        if kind == "refunds":
            return self._calls.read(lambda v1: v1.refunds.list(query))
        return self._calls.read(lambda v1: v1.balance_transactions.list({**query, "expand": ["data.source"]}))


def _period(from_us: int | None, to_us: int | None) -> dict[str, int]:
    found = {}
    if from_us is not None:
        found["gte"] = from_us // SECOND_US
    if to_us is not None:
        found["lt"] = -(-to_us // SECOND_US)
    return found


def _check(newest_first: list[Mapping[str, Any]], period: dict[str, int]) -> None:
    last: int | None = None
    for row in newest_first:
        created = row.get("created")
        if not isinstance(created, int):
            raise _unread(f"{row.get('id')} has no time")
        if not period.get("gte", created) <= created < period.get("lt", created + 1):
            raise _unread(f"{row.get('id')} is outside the period that was asked for")
        if last is not None and created > last:
            raise _unread(f"{row.get('id')} is out of order, so the list changed while it was read")
        last = created


def _unread(why: str) -> PayonceError:
    return UsageError(
        f"Stripe's list could not be read as a whole: {why}", code="statement_unread", hint="try again, or use a report"
    )
