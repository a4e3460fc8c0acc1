"""The Python API: ``run``, ``run_async``; ``once`` is in api_once.py. The same ledger, engine and guarantees as the command line."""

from __future__ import annotations

import asyncio
import difflib
import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from payonce.core.errors import UsageError
from payonce.core.model import BatchSpec, Item, Limits, Status
from payonce.core.money import Money
from payonce.core.seal import Seal
from payonce.core.states import BatchState, ItemState
from payonce.engine.run import RunOutcome
from payonce.ledger.connect import connect
from payonce.providers.python_operation import settings_of
from payonce.providers.registry import build
from payonce.service.durations import rate_per_ks
from payonce.service.pythonic import ItemLike, check_items
from payonce.service.pythonic_seal import same_items, seal_beside_others
from payonce.service.running import RunPlan, limits_data, run_sealed, run_sealed_async
from payonce.service.trailing_run import Checkpoints
from payonce.service.trailing_settings import of_mapping as trail_settings

DEFAULT_LEDGER = "sqlite:payonce.db"
_MONEY_OPERATIONS = frozenset({"refund", "payout", "invoice"})


@dataclass(frozen=True, slots=True)
class Counts:
    """How many items are in each state; they add up to ``total``."""

    total: int
    planned: int
    pending: int
    committed: int
    refused: int
    unknown: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Result:
    """How a run ended. ``exit_code`` and ``state`` as on the command line; ``reason`` says why it stopped early.

    ``checkpoint`` is the signed text of the trail's last checkpoint, where the run made one, and ``warnings`` say which
    checkpoints could not be made or published."""

    batch: str
    state: BatchState
    exit_code: int
    counts: Counts
    code: str | None
    reason: str | None
    ledger: str = field(repr=False)
    status: Status | None = field(default=None, repr=False)
    checkpoint: str | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()

    def items(self, *states: str) -> Iterator[Item]:
        """The items in input order, read from the ledger; all of them, or those in the states named."""
        store = connect(self.ledger, create=False, read_only=True)
        try:
            after: int | None = 0
            while after is not None:
                page = store.items(self.batch, states=[ItemState(s) for s in states], after_n=after)
                yield from page.items
                after = page.next_n
        finally:
            store.close()


def run(batch: str, items: Iterable[ItemLike], operation: Callable[..., Any], **settings: Any) -> Result:
    """Runs a batch to its end, or resumes it: the same call goes on after any crash.

    Takes what ``run_async`` takes. Works inside a running event loop too, in a thread of its own; there ``await
    run_async(...)`` is better, since an async operation then runs in your loop.
    """
    prepared = _prepare(batch, items, operation, **settings)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _result(prepared, run_sealed(prepared.plan))
    return _in_thread(functools.partial(run_sealed, prepared.plan), prepared)


async def run_async(batch: str, items: Iterable[ItemLike], operation: Callable[..., Any], **settings: Any) -> Result:
    """Runs or resumes a batch of items through an operation, in the running event loop.

    ``batch`` is the batch's id, unique in the ledger; ``items`` as in ``service.pythonic.check_items``; ``operation``
    a function taking a ``payonce.Call`` and returning an outcome, marked by ``payonce.operation`` with what its far
    side promises. Settings, all optional: ``ledger`` (address), ``kind`` (refund, payout, invoice, call), ``concurrency``,
    ``rate`` ("80/s"), ``attempts``, ``budget``, ``max_amount``, ``reserve`` (Money, or {currency: "12.00"}),
    ``stop_after_refusals``, ``stop_after_consecutive``, ``namespace``, ``progress`` (called with a Status),
    ``allow_overlap`` (the reason why items may act on targets that another batch of the ledger has acted on; without it
    such items are an OverlapError, and nothing is sealed), ``trail`` (a mapping with the settings of ``[trail]`` in a
    batch file: without it, checkpoints are made where the ledger has a key of its own).

    Each item is executed at most once as far as the promises are kept; a crash at any instant leaves each item in one
    state of the ledger. Raises UsageError, InputError, SealedError, ConfigError (nothing was sent) and LedgerError (nothing more
    was sent); how the run ended otherwise is in the result.
    """
    prepared = await asyncio.to_thread(functools.partial(_prepare, batch, items, operation, **settings))
    return _result(prepared, await run_sealed_async(prepared.plan))


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is to be run, and the checkpoints that are made beside it."""

    plan: RunPlan
    checkpoints: Checkpoints | None


def _prepare(
    batch: str,
    items: Iterable[ItemLike],
    operation: Callable[..., Any],
    *,
    ledger: str = "",
    kind: str = "call",
    namespace: str = "payonce",
    progress: Callable[[Status], None] | None = None,
    allow_overlap: str | None = None,
    trail: Mapping[str, Any] | None = None,
    **limits: Any,
) -> _Prepared:
    """Checks and seals; returns what is to be run."""
    _known(limits)
    url = ledger or os.environ.get("PAYONCE_LEDGER") or DEFAULT_LEDGER
    chosen = _limits(**limits)
    kept = trail_settings(trail or {}, operation=kind)
    checkpoints = Checkpoints.of(url, kept)
    checked = check_items(items, needs_money=kind in _MONEY_OPERATIONS, max_amount=chosen.max_amount)
    seal = Seal()
    for item in checked.items:
        seal.add(item)
    make = functools.partial(
        build,
        "python",
        {},
        operation=kind,
        batch=batch,
        environ=os.environ,
        concurrency=chosen.concurrency,
        function=operation,
    )
    store = connect(url, create=True)
    try:
        if not store.batches(batch):
            identity = _identity(operation)
            spec = BatchSpec(
                batch,
                kind,
                "python",
                namespace=namespace,
                account=identity[0],
                mode=identity[1],
                targets=checked.targets,
                config={"provider_digest": make().provider_digest, "limits": limits_data(chosen)},
            )
            seal_beside_others(store, spec, checked.items, seal=seal.hexdigest(), allow_overlap=allow_overlap)
        same_items(store.batches(batch)[0].seal, seal.hexdigest(), batch=batch)
    finally:
        store.close()
    beside = None if checkpoints is None else checkpoints.beside
    return _Prepared(
        RunPlan(url, batch, chosen, make, progress=progress, payloads=kept.payloads, beside=beside), checkpoints
    )


def _known(named: Iterable[str]) -> None:
    """Refuses a setting that ``run`` does not have. Raises UsageError naming it and the nearest."""
    limits = list(inspect.signature(_limits).parameters)
    known = [*(name for name, p in inspect.signature(_prepare).parameters.items() if p.kind is p.KEYWORD_ONLY), *limits]
    for name in (name for name in named if name not in limits):
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
        raise UsageError(f"run has no setting {name!r}", code="unknown_setting", hint=hint)


def _identity(operation: Callable[..., Any]) -> tuple[str | None, str | None]:
    promised = settings_of(operation)
    return promised.account, promised.mode


def _limits(
    *,
    concurrency: int = 16,
    rate: str | None = None,
    attempts: int = 5,
    budget: Money | Mapping[str, str] | None = None,
    max_amount: Money | Mapping[str, str] | None = None,
    reserve: Money | Mapping[str, str] | None = None,
    stop_after_refusals: int | None = None,
    stop_after_consecutive: int | None = None,
) -> Limits:
    return Limits(
        concurrency=concurrency,
        rate_per_ks=None if rate is None else rate_per_ks(rate),
        attempts=attempts,
        budget=_amounts(budget),
        max_amount=_amounts(max_amount),
        reserve=_amounts(reserve),
        stop_after_refusals=stop_after_refusals,
        stop_after_consecutive=stop_after_consecutive,
    )


def _amounts(given: Money | Mapping[str, str] | None) -> dict[str, int]:
    if given is None:
        return {}
    if isinstance(given, Money):
        return {given.currency: given.minor}
    return {m.currency: m.minor for m in (Money(amount, currency) for currency, amount in given.items())}


def _result(prepared: _Prepared, outcome: RunOutcome) -> Result:
    status = outcome.status
    by_state = {s.value: 0 if status is None else status.count(s) for s in ItemState}
    made = prepared.checkpoints
    counts = Counts(total=sum(by_state.values()), **by_state)
    return Result(
        prepared.plan.batch,
        outcome.state,
        outcome.exit_code,
        counts,
        code=outcome.code,
        reason=outcome.reason,
        ledger=prepared.plan.ledger,
        status=status,
        checkpoint=str(made.last) if made is not None and made.last is not None else None,
        warnings=tuple(made.warnings) if made is not None else (),
    )


def _in_thread(call: Callable[[], RunOutcome], prepared: _Prepared) -> Result:
    """Runs in a thread of its own, since this one's event loop is running already."""
    ended: list[RunOutcome | BaseException] = []

    def target() -> None:
        try:
            ended.append(call())
        except BaseException as fault:
            ended.append(fault)

    thread = threading.Thread(target=target, name="payonce-run")
    thread.start()
    thread.join()
    if isinstance(ended[0], BaseException):
        raise ended[0]
    return _result(prepared, ended[0])
