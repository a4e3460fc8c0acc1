"""``plan --check``: reads each item's target at the provider before anything is sent, where the provider can be read."""

from __future__ import annotations

import asyncio
from itertools import islice

from payonce.core.errors import Problem
from payonce.core.model import Item, NewItem
from payonce.intake.result import Intake
from payonce.providers.protocol import Preflight, Provider
from payonce.service.batchfile import BatchFile

_CHUNK = 500
_AT_ONCE = 16
_NO_READ = "the provider's adapter offers no read of a target; nothing was checked there"


async def check_targets(
    provider: Provider, intake: Intake, file: BatchFile
) -> tuple[tuple[Problem, ...], int | None, str | None]:
    """The items whose target does not fit, how many were read, and a warning where none can be.

    A read that fails is a finding too: what could not be checked is not called checked.
    """
    findings: list[Problem] = []
    checked = 0
    rows = enumerate(intake.items(), start=1)
    while chunk := list(islice(rows, _CHUNK)):
        results = await _read(provider, chunk, min(_AT_ONCE, file.limits.concurrency))
        if checked == 0 and all(result is None for result in results):
            return (), None, _NO_READ
        for (_, item), result in zip(chunk, results, strict=True):
            checked += result is not None
            if result is not None and not result.ok:
                findings.append(_finding(intake.file, item, result))
    return tuple(findings), checked, None


async def _read(provider: Provider, chunk: list[tuple[int, NewItem]], at_once: int) -> list[Preflight | None]:
    places = asyncio.Semaphore(at_once)
    timeout_us = provider.declaration.timeout_us

    async def one(n: int, item: NewItem) -> Preflight | None:
        async with places:
            return await provider.preflight(_as_item(n, item), timeout_us=timeout_us)

    return list(await asyncio.gather(*(one(n, item) for n, item in chunk)))


def _as_item(n: int, item: NewItem) -> Item:
    """The item as it will be in the ledger."""
    return Item(n=n, id=item.id, target=item.target or item.id, money=item.money, fields=item.fields)


def _finding(file: str, item: NewItem, result: Preflight) -> Problem:
    return Problem(
        file, item.line, None, item.id, result.code or "check_failed", f"{item.id}: {result.message or 'does not fit'}"
    )
