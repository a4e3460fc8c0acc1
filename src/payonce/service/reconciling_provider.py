"""The provider's own answers as a statement: its look-up, asked item by item, at a modest pace.

Reads only. A listing that is not whole proves nothing, so one item that cannot be looked up ends it with an error; of an
item that was never executed, as far as the ledger knows, an answer would prove nothing missing, so that it is set aside.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from payonce.core.errors import UsageError
from payonce.core.model import Actor, Batch, Item
from payonce.core.outcome import Execution, Found, LookupFailed
from payonce.core.states import ItemState, Settlement
from payonce.core.wording import some
from payonce.ledger.protocol import Ledger
from payonce.providers.protocol import Identity, Provider
from payonce.reconcile.errors import refuse
from payonce.reconcile.match import reconcile
from payonce.reconcile.model import Coverage, Entry, Kind, Reconciliation
from payonce.reconcile.pairing import CLOCK_TOLERANCE_US
from payonce.reconcile.report import Report
from payonce.reconcile.statement import Statement
from payonce.service import batchfile, planning
from payonce.service.inspecting import find_batch, items
from payonce.service.reconciling import Asked, reconcile_statement
from payonce.service.reconciling_compare import compare
from payonce.service.reconciling_ledger import ledger_lines, with_times
from payonce.service.running import check_bound

_TRIES: Final = 5
_SECOND_US: Final = 1_000_000
_MAY_BE_EXECUTED: Final = (ItemState.UNKNOWN, ItemState.PENDING)
_NOT_EXECUTED: Final = (ItemState.REFUSED, ItemState.SKIPPED)
# Every execution that was shown, with the item it was asked for; the provider's digest, identity and lag; what could not
# be looked up and need not be.
Shown = tuple[list[tuple[Item, Execution]], tuple[str, Identity, int], list[Item]]
_CAME_BACK: Final = (Settlement.RETURNED, Settlement.FAILED)


def reconcile_provider(ledger: Ledger, file: Path, asked: Asked, *, actor: Actor) -> Report:
    """Reconciles a batch with what its provider's look-up shows of each item.

    Raises UsageError where the batch file is missing, the provider has no look-up, or an item cannot be looked up;
    SealedError where the credentials are for another account.
    """
    if file.suffix != ".toml":
        raise UsageError(
            "asking the provider needs the batch file",
            code="usage",
            hint="payonce reconcile BATCH.toml --from-provider",
        )
    return reconcile_items(ledger, file, asked_about(items(ledger, batchfile.load(file).id)), asked, actor=actor)


def asked_about(known: Iterable[Item]) -> list[Item]:
    """All that are not just planned: what a run may have executed, and what it refused or skipped, which somebody else may
    have executed. The latter come last, so that what is shown of a target is told of the former."""
    asked = [item for item in known if _may_be_executed(item) or item.state in _NOT_EXECUTED]
    return sorted(asked, key=lambda item: item.state in _NOT_EXECUTED)


def _may_be_executed(item: Item) -> bool:
    return bool(item.attempts or item.reference or item.state in _MAY_BE_EXECUTED)


def reconcile_items(
    ledger: Ledger, file: Path, chosen: Sequence[Item], asked: Asked, *, actor: Actor, within_s: float | None = None
) -> Report:
    """As ``reconcile_provider``, asking about some items of the batch; ``within_s`` seconds at most, if it is given."""
    loaded = batchfile.load(file)
    batch = find_batch(ledger, loaded.id)

    def make() -> Provider:
        return planning.provider_of(loaded, environ=os.environ)

    started_us = time.time_ns() // 1000
    limits = loaded.limits

    async def look() -> Shown:
        async with asyncio.timeout(within_s):
            return await listing(make, chosen, concurrency=limits.concurrency, rate_per_ks=limits.rate_per_ks)

    try:
        shown, provider, unread = asyncio.run(look())
    except TimeoutError:
        raise UsageError(
            f"the provider did not show {some(len(chosen), 'item')} within {within_s:g} seconds",
            code="lookup_failed", hint="nothing was compared; try again, or use a statement",
        ) from None  # fmt: skip
    check_bound(batch, provider[1], digest=provider[0])
    statement = as_statement(shown, name=f"{loaded.provider['kind']} look-up", until_us=started_us, lag_us=provider[2])
    earlier = None if batch.started_us is None else batch.started_us - CLOCK_TOLERANCE_US
    ignored = tuple((f"item {item.id}", f"{item.state.value}, and could not be looked up") for item in unread)
    entries = _earlier_apart(statement.entries, chosen, earlier)
    statement = replace(statement, entries=entries, ignored=ignored, rows=statement.rows + len(ignored))
    return reconcile_statement(ledger, batch, statement, asked, actor=actor, comparing=_compare)


def _compare(ledger: Ledger, batch: Batch, statement: Statement) -> Reconciliation:
    """The comparison of what was shown. Where that is nothing of the batch's time, what is younger than the lag is not covered;
    raises StatementError where something older is missing, since the look-up may be of the wrong place."""
    if not all(entry.outside for entry in statement.entries):
        return compare(ledger, batch, statement)
    lines = ledger_lines(ledger, batch)
    lines = with_times(ledger, batch.spec.id, lines, range(len(lines)))
    result = reconcile(lines, statement.entries, statement.coverage)
    missing = result.counts.get(Kind.MISSING_AT_PROVIDER, 0)
    if missing:
        refuse(
            f"the provider's look-up shows none of the batch's executed items, and should show {missing}",
            code="nothing_matches",
            hint="another account, or [provider.lookup] reads the wrong place; payonce items shows the references",
        )
    return result


def _earlier_apart(entries: Sequence[Entry], chosen: Sequence[Item], before_us: int | None) -> tuple[Entry, ...]:
    """What lies on an item's target from before the batch began and is no item's own is other business: not covered."""
    if before_us is None:
        return tuple(entries)
    ours = {item.reference for item in chosen if item.reference}
    # Where an item's outcome is not known, an earlier execution may be its own: somebody else may have started it.
    open_targets = {item.target for item in chosen if item.state is not ItemState.COMMITTED and _may_be_executed(item)}

    def other(entry: Entry) -> bool:
        early = entry.at_us is not None and entry.at_us < before_us
        return (
            early
            and not entry.keys
            and not entry.owns
            and entry.reference not in ours
            and entry.target not in open_targets
        )

    return tuple(replace(entry, outside=True) if other(entry) else entry for entry in entries)


async def listing(
    make: Callable[[], Provider], chosen: Sequence[Item], *, concurrency: int, rate_per_ks: int | None = None
) -> Shown:
    """Every execution on the items' targets, each once, with the provider's digest, identity and lag, and the refused and
    skipped items that could not be looked up.

    Raises UsageError ``no_lookup`` and ``lookup_failed``.
    """
    provider = make()
    declared = provider.declaration.lookup
    if declared is None:
        raise UsageError("this provider has no look-up", code="no_lookup", hint="use its statement: --statement FILE")
    await provider.open()
    try:
        identity = await provider.identify()
        gate = asyncio.Semaphore(max(1, min(concurrency, 16)))
        pace = _Pace(rate_per_ks)

        async def one(item: Item) -> Found | None:
            async with gate:
                await pace.wait()
                return await _found(provider, item)

        answers = await asyncio.gather(*(one(item) for item in chosen))
    finally:
        await provider.close()
    seen: set[str] = set()
    shown: list[tuple[Item, Execution]] = []
    for item, answer in zip(chosen, answers, strict=True):
        for execution in () if answer is None else answer.executions:
            # Items on one target are shown the same executions; each counts once.
            if execution.reference not in seen:
                seen.add(execution.reference)
                shown.append((item, execution))
    unread = [item for item, answer in zip(chosen, answers, strict=True) if answer is None]
    return shown, (provider.provider_digest, identity, declared.lag_us), unread


class _Pace:
    """Keeps look-ups within the batch's rate: one after the other, evenly."""

    def __init__(self, rate_per_ks: int | None) -> None:
        self._gap_s = 0.0 if rate_per_ks is None else 1000 / rate_per_ks
        self._next_s = 0.0

    async def wait(self) -> None:
        now = asyncio.get_running_loop().time()
        at = max(now, self._next_s)
        self._next_s = at + self._gap_s
        if at > now:
            await asyncio.sleep(at - now)


async def _found(provider: Provider, item: Item) -> Found | None:
    """The answer for an item; None for one that was never executed and is not answered, such as on a target that is none."""
    spare = item.state in _NOT_EXECUTED and not item.attempts
    wait_us = 250_000
    answer: Found | LookupFailed = LookupFailed("not_asked")
    for _ in range(_TRIES):
        answer = await provider.lookup(item, key=None, step=item.step, timeout_us=provider.declaration.timeout_us)
        if isinstance(answer, Found):
            return answer
        if answer.stop or answer.final or (spare and not answer.load):
            break
        await asyncio.sleep(max(wait_us, answer.retry_after_us or 0) / _SECOND_US)
        wait_us *= 2
    assert isinstance(answer, LookupFailed), "a found answer was returned"
    if spare and not answer.stop:
        return None
    raise UsageError(
        f"item {item.id} could not be looked up: {answer.message or answer.code}",
        code="lookup_failed",
        hint="nothing was compared; try again, or use a statement",
    )


def as_statement(shown: Sequence[tuple[Item, Execution]], *, name: str, until_us: int, lag_us: int) -> Statement:
    """The executions as a statement that covers everything up to the moment it was asked for, less the lag."""
    entries = tuple(_entry(place, item, execution) for place, (item, execution) in enumerate(shown))
    digest = hashlib.sha256("\n".join(repr(entry) for entry in entries).encode()).hexdigest()
    return Statement(
        layout=name, sha256=digest, files=(), rows=len(entries), used=len(entries), ignored=(), entries=entries,
        coverage=Coverage(0, until_us, lag_us), period="asked",
    )  # fmt: skip


def _entry(place: int, item: Item, execution: Execution) -> Entry:
    money = execution.money or item.billed or item.money
    back = execution.settlement in _CAME_BACK or execution.failed
    minor = money.minor if money is not None else 0
    return Entry(
        place=place,
        currency=money.currency if money is not None else "",
        reference=execution.reference,
        keys=(execution.key,) if execution.key else (),
        owns=(execution.own_reference,) if execution.own_reference else (),
        target=item.target,
        legs=(minor,),
        returned=minor if back else 0,
        failed=execution.failed,
        pending=execution.settlement is Settlement.PENDING,
        at_us=execution.at_us,
        rows=(str(place + 1),),
    )
