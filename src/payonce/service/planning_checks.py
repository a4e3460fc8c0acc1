"""``--check``: reads each target at the provider before anything is sent, where the provider can be read.

Several items on one target are read as one that asks for their sum: each alone may fit where all together do not. Reads
keep to the batch's concurrency and rate. A read that fails is a finding: what could not be checked is not called checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from payonce.core.errors import Problem
from payonce.core.model import Item, NewItem
from payonce.core.money import Money
from payonce.intake.hashes import Hashes
from payonce.providers.protocol import Preflight, Provider
from payonce.service.batchfile import BatchFile
from payonce.service.planning_known import Known, Shown

_CHUNK: Final = 500
_AT_ONCE: Final = 16
# Targets that several items act on, as far as they are asked about together.
_TOGETHER: Final = 300_000
_NO_READ: Final = "the provider's adapter offers no read of a target; nothing was checked there"

Items = Callable[[], Iterator[NewItem]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One read: the item it is made for, with the money of all items that it stands for."""

    item: Item
    group: tuple[NewItem, ...]


async def check_targets(
    provider: Provider, items: Items, file: BatchFile, source: str, *, known: Known | None = None
) -> tuple[tuple[Problem, ...], int | None, str | None]:
    """The items whose target does not fit, how many were read, and a warning where none can be. ``known`` compares the
    others with the ledger under all names of their targets, and keeps the overlaps it finds."""
    findings: list[Problem] = []
    checked = 0
    pacing = _Pacing(file.limits.rate_per_ks)
    asked = _questions(items)
    while chunk := list(islice(asked, _CHUNK)):
        results = await _read(provider, chunk, pacing, min(_AT_ONCE, file.limits.concurrency))
        if checked == 0 and all(result is None for result in results):
            return (), None, _NO_READ
        shown: list[Shown] = []
        for question, result in zip(chunk, results, strict=True):
            if result is None:
                continue
            checked += len(question.group)
            if result.ok or result.names:
                shown.append((question.group, result))
            if not result.ok:
                findings += [_finding(source, item, result, len(question.group)) for item in question.group]
        for place, code, words in known.look(shown) if known is not None else ():
            group, result = shown[place]
            findings += [_finding(source, item, replace(result, code=code, message=words), 1) for item in group]
    return tuple(sorted(findings, key=lambda problem: problem.line or 0)), checked, None


def _questions(items: Items) -> Iterator[_Asked]:
    """One question for each target; items of different currencies on one target ask each for itself."""
    shared = _shared(items)
    groups: dict[str, list[tuple[int, NewItem]]] = {}
    for n, item in enumerate(items(), start=1):
        target = item.target or item.id
        if hash(target) in shared:
            groups.setdefault(target, []).append((n, item))
        else:
            yield _Asked(_as_item(n, item, item.money), (item,))
    for group in groups.values():
        moneys = [item.money for _, item in group if item.money is not None]
        if len(moneys) == len(group) and len({money.currency for money in moneys}) == 1:
            n, first = group[0]
            money = Money.of_minor(sum(money.minor for money in moneys), moneys[0].currency)
            yield _Asked(_as_item(n, first, money), tuple(item for _, item in group))
        else:
            yield from (_Asked(_as_item(n, item, item.money), (item,)) for n, item in group)


def _shared(items: Items) -> frozenset[int]:
    """Hashes of the targets that more than one item acts on."""
    column = Hashes()
    try:
        rows = items()
        while block := [hash(item.target or item.id) for item in islice(rows, 10_000)]:
            column.add(block)
        return column.repeated(limit=_TOGETHER)[0]
    finally:
        column.close()


class _Pacing:
    """Start times of reads, evenly spaced at the batch's rate; at once where there is none."""

    def __init__(self, rate_per_ks: int | None) -> None:
        self._gap_s = 0.0 if rate_per_ks is None else 1000 / rate_per_ks
        self._next_s = 0.0

    async def turn(self) -> None:
        """Returns when the next read may start."""
        if not self._gap_s:
            return
        now = asyncio.get_running_loop().time()
        start = max(self._next_s, now)
        self._next_s = start + self._gap_s
        await asyncio.sleep(start - now)


async def _read(provider: Provider, chunk: Sequence[_Asked], pacing: _Pacing, at_once: int) -> list[Preflight | None]:
    places = asyncio.Semaphore(at_once)
    timeout_us = provider.declaration.timeout_us

    async def one(question: _Asked) -> Preflight | None:
        async with places:
            await pacing.turn()
            return await provider.preflight(question.item, timeout_us=timeout_us)

    return list(await asyncio.gather(*(one(question) for question in chunk)))


def _as_item(n: int, item: NewItem, money: Money | None) -> Item:
    """The item as it will be in the ledger."""
    return Item(n=n, id=item.id, target=item.target or item.id, money=money, fields=item.fields)


def _finding(file: str, item: NewItem, result: Preflight, together: int) -> Problem:
    what = result.message or "does not fit"
    if together > 1:
        what = f"all {together} items on {item.target or item.id} together: {what}"
    return Problem(file, item.line, None, item.id, result.code or "check_failed", f"{item.id}: {what}")
