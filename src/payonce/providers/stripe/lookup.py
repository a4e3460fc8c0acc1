"""Stripe look-ups: by listing, over all pages, never by search; complete, or failed.

Search lags by up to an hour in an outage and is no read-after-write (https://docs.stripe.com/search), so it proves no
absence. Lists come newest first and page by the id of the last entry.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from payonce.core.model import Item, Request
from payonce.core.outcome import Execution, Found, LookupFailed, LookupReply
from payonce.providers.official.adapter import NoAnswer
from payonce.providers.official.values import Unreadable, entries, ident
from payonce.providers.stripe.calls import PAGE, StripeCalls, invoice_of, target_field
from payonce.providers.stripe.confirm import execution

MAX_PAGES: Final = 300
Read = Callable[..., Any]


class StripeLookup:
    """The look-up of one operation. ``read`` is the adapter's: a whole 200 with a JSON object, or NoAnswer."""

    def __init__(self, calls: StripeCalls, *, operation: str, batch: str, read: Read) -> None:
        self.calls = calls
        self._operation = operation
        self._batch = batch
        self._read = read

    async def run(self, item: Item, *, step: str, timeout_us: int) -> LookupReply:
        """All executions of an item's step, oldest first, within ``timeout_us`` for all pages together."""
        deadline_us = time.monotonic_ns() // 1000 + timeout_us
        try:
            if step in ("finalise", "pay"):
                found = await self._invoice(item, step=step, deadline_us=deadline_us)
            else:
                found = await self._listed(item, step=step, deadline_us=deadline_us)
        except NoAnswer as error:
            return error.failed
        except Unreadable as error:
            return LookupFailed("unreadable_answer", str(error))
        return Found(tuple(found), status=200)

    async def _listed(self, item: Item, *, step: str, deadline_us: int) -> list[Execution]:
        seen = await self.pages(lambda after: self._page(item, step=step, after=after), deadline_us=deadline_us)
        found = [self._execution(entry, step=step) for entry in reversed(seen)]
        return sorted(found, key=lambda one: one.at_us or 0)

    async def pages(
        self,
        request: Callable[[str | None], Request],
        *,
        deadline_us: int,
        page_timeout_us: int | None = None,
        limit: int = MAX_PAGES,
    ) -> list[Mapping[str, Any]]:
        """Every entry of a list, newest first. Raises NoAnswer where it did not end, or an entry came twice."""
        seen: dict[str, Mapping[str, Any]] = {}
        after: str | None = None
        for _ in range(limit):
            left_us = deadline_us - time.monotonic_ns() // 1000
            timeout_us = max(min(left_us, page_timeout_us or left_us), 1)
            tree = await self._read(request(after), timeout_us=timeout_us)
            page = entries(tree.get("data"))
            for entry in page:
                after = ident(entry)
                if after in seen:
                    raise NoAnswer(LookupFailed("list_moved", f"{after} is on two pages of the list"))
                seen[after] = entry
            if tree.get("has_more") is not True:
                return list(seen.values())
            if not page:
                raise NoAnswer(LookupFailed("list_broken", "an empty page says that there are more"))
        raise NoAnswer(LookupFailed("too_many_pages", f"the list did not end within {limit} pages"))

    def _page(self, item: Item, *, step: str, after: str | None) -> Request:
        query: dict[str, Any] = {"limit": PAGE}
        if after is not None:
            query["starting_after"] = after
        match self._operation, step:
            case "refund", _:
                query[target_field(item.target)] = item.target
                return self.calls.read(lambda v1: v1.refunds.list(query))
            case "payout", _:
                if item.target != item.id:
                    query["destination"] = item.target
                return self.calls.read(lambda v1: v1.payouts.list(query))
            case "transfer", _:
                query["transfer_group"] = self.calls.group(item)
                return self.calls.read(lambda v1: v1.transfers.list(query))
            case _, "create":
                query["customer"] = item.target
                return self.calls.read(lambda v1: v1.invoices.list(query))
            case _:
                query["invoice"] = invoice_of(item)
                return self.calls.read(lambda v1: v1.invoice_items.list(query))

    def _execution(self, entry: Mapping[str, Any], *, step: str) -> Execution:
        if step == "create":
            # A draft has no amount yet: what it is over is seen when its line is added.
            found = execution({**entry, "status": "draft"}, operation="invoice", batch=self._batch)
            return replace(found, money=None, carry={"invoice": found.reference})
        if step == "add":
            return execution(
                {**entry, "total": entry.get("amount"), "status": "draft"}, operation="invoice", batch=self._batch
            )
        return execution(entry, operation=self._operation, batch=self._batch)

    async def _invoice(self, item: Item, *, step: str, deadline_us: int) -> list[Execution]:
        """The invoice itself tells whether it was finalised, and whether it was paid."""
        invoice = invoice_of(item)
        left_us = deadline_us - time.monotonic_ns() // 1000
        tree = await self._read(self.calls.read(lambda v1: v1.invoices.retrieve(invoice)), timeout_us=left_us)
        status = tree.get("status")
        if status == "draft" or (step == "pay" and status == "open"):
            return []
        return [execution(tree, operation="invoice", batch=self._batch)]
