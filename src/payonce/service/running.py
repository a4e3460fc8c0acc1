"""Wiring a run: ledger, provider, spool, signals and engine put together for one sealed batch.

The same way for the command line, the Python API and the demo. It makes no decision of its own: whether a batch may
run is read from the ledger, how it runs is the engine's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from payonce.core.commands import BatchCommand, Control
from payonce.core.errors import LedgerError, SealedError, UsageError
from payonce.core.model import Actor, Batch, Limits, Status
from payonce.core.payloads import PayloadPolicy
from payonce.core.states import BatchState, ItemState
from payonce.engine.ports import Progress
from payonce.engine.run import RunOutcome, run_batch
from payonce.engine.spool import Spool
from payonce.engine.stop import StopRequest
from payonce.engine.takein import take_in_only
from payonce.ledger.actors import this_actor
from payonce.ledger.connect import connect
from payonce.ledger.group import AsyncLedger
from payonce.ledger.outputs import OutputFiles, outputs_of
from payonce.providers.protocol import Identity, Provider
from payonce.service.open_findings import with_findings
from payonce.service.provider_changes import changed_settings

# A cancelled batch may still have pending items, which a run decides.
_OVER: Final = frozenset({BatchState.FINISHED, BatchState.CANCELLED})


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a run needs beside its ledger: built by the batch-file and Python faces alike.

    ``provider`` builds the adapter; it is called only when there is something to run, so that a finished batch needs
    neither credentials nor the provider's SDK. ``payloads`` is what the trail keeps of bodies (by default what suits the
    operation), ``beside`` is entered around the run: checkpoints of the trail. ``read_targets``: see engine.run.
    ``table`` is the [provider] table, where there is one: an error names what changed in it.
    """

    ledger: str
    batch: str
    limits: Limits
    provider: Callable[[], Provider]
    signals: bool = True
    progress: Progress | None = None
    payloads: PayloadPolicy | None = None
    read_targets: bool = True
    table: Mapping[str, Any] | None = None
    beside: Callable[[AsyncLedger], contextlib.AbstractAsyncContextManager[None]] | None = None


def run_sealed(plan: RunPlan) -> RunOutcome:
    """Runs or resumes a sealed batch to its end; see ``run_sealed_async``. Uses uvloop where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(run_sealed_async(plan))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run_sealed_async(plan))


async def run_sealed_async(plan: RunPlan) -> RunOutcome:
    """Runs or resumes a sealed batch.

    A finished or cancelled batch makes no call at all, and what waits in the spool is taken in whatever the batch's state
    is. Raises UsageError for an unknown batch, SealedError where the
    provider's account, mode or settings are not those the batch was sealed with, LedgerError where the ledger cannot
    be opened; nothing was sent then.
    """
    store = connect(plan.ledger, create=False)
    ledger, outputs = AsyncLedger(store), outputs_of(plan.ledger)
    try:
        info = await ledger.info()
        spool = Spool(spool_places(plan.ledger), name=info.id)
        status = await _standing(ledger, plan)
        if not _may_start(status) and await _take_in(ledger, status.batch, plan, spool, outputs):
            status = await _standing(ledger, plan)
        batch = status.batch
        if not _may_start(status):
            return await _told(ledger, _not_started(batch, status), plan)
        provider = plan.provider()
        await provider.open()
        try:
            check_bound(batch, await provider.identify(), digest=provider.provider_digest, table=plan.table)
            actor = this_actor()
            await _configure(ledger, batch, plan.limits, actor)
            stop = StopRequest()
            with _signals(stop) if plan.signals else contextlib.nullcontext():
                async with plan.beside(ledger) if plan.beside is not None else contextlib.nullcontext():
                    outcome = await run_batch(
                        ledger,
                        provider,
                        batch=batch,
                        limits=plan.limits,
                        actor=actor,
                        spool=spool,
                        ledger_id=info.id,
                        stop=stop,
                        progress=plan.progress,
                        payloads=plan.payloads,
                        outputs=outputs,
                        read_targets=plan.read_targets,
                    )
        finally:
            await provider.close()
        return await _told(ledger, outcome, plan)
    finally:
        with contextlib.suppress(LedgerError):
            await ledger.close()
        outputs.close()


async def _told(ledger: AsyncLedger, outcome: RunOutcome, plan: RunPlan) -> RunOutcome:
    """The outcome with what open findings add; as it is where the ledger cannot be read any more, which is said already."""
    try:
        return with_findings(outcome, await ledger.findings(plan.batch))
    except LedgerError:
        return outcome


async def _standing(ledger: AsyncLedger, plan: RunPlan) -> Status:
    find_batch(await ledger.batches(plan.batch), plan.batch)
    return await ledger.status(plan.batch)


def _may_start(status: Status) -> bool:
    """Whether a run has anything to do, and no person holds it."""
    return not (_is_over(status) or status.batch.state is BatchState.PAUSED or status.batch.held)


async def _take_in(ledger: AsyncLedger, batch: Batch, plan: RunPlan, spool: Spool, outputs: OutputFiles) -> bool:
    """What waits in the spool decides items of a batch that is not run now too; an item may be planned again by it."""
    return await take_in_only(
        ledger, batch=batch, actor=this_actor(), lease_us=plan.limits.lease_us, spool=spool, ledger_id=spool.name,
        outputs=outputs,
    )  # fmt: skip


def find_batch(found: Sequence[Batch], name: str) -> Batch:
    """The one batch that was found by its name. Raises UsageError where there is none."""
    if not found:
        raise UsageError(
            f"there is no batch {name!r} in this ledger",
            code="unknown_batch",
            hint="payonce status lists the batches; payonce plan BATCH.toml seals a new one",
        )
    return found[0]


def _is_over(status: Status) -> bool:
    # A cancel that was cut off left items planned, which a run of the cancelled batch sweeps up.
    return status.batch.state in _OVER and not (status.count(ItemState.PENDING) or status.count(ItemState.PLANNED))


def _not_started(batch: Batch, status: Status) -> RunOutcome:
    """A batch that is over, or that a person holds: nothing is sent."""
    if batch.state in _OVER:
        bad = status.count(ItemState.REFUSED) + status.count(ItemState.UNKNOWN)
        return RunOutcome(1 if bad else 0, batch.state, code=None, reason=batch.reason, status=status)
    why = batch.reason or "no reason was given"
    text = f"the batch is {batch.state.value}: {why}; payonce resume {batch.spec.id} lets it go on"
    return RunOutcome(4, batch.state, code=batch.reason_code or batch.state.value, reason=text, status=status)


def check_bound(batch: Batch, identity: Identity, *, digest: str, table: Mapping[str, Any] | None = None) -> None:
    """Refuses another account, mode or provider configuration than the batch was sealed with (SPEC invariant 8).

    ``table`` is the [provider] table there is now: the settings in it that differ are named.
    """
    spec = batch.spec
    pairs = (("account", spec.account, identity.account), ("mode", spec.mode, identity.mode))
    for name, sealed, found in pairs:
        if sealed is not None and found is not None and sealed != found:
            raise SealedError(
                f"batch {spec.id} was sealed for {name} {sealed!r}, the credentials are for {found!r}",
                code=f"other_{name}",
                hint="use the credentials the batch was sealed with, or seal a new batch",
            )
    sealed_digest = spec.config.get("provider_digest")
    if sealed_digest is not None and sealed_digest != digest:
        named = changed_settings(spec.config.get("provider"), table)
        raise SealedError(
            f"the [provider] settings that decide what a call does have changed since batch {spec.id} was sealed{named}",
            code="other_provider",
            hint="put the settings back as they were, or seal a new batch",
        )


async def _configure(ledger: AsyncLedger, batch: Batch, limits: Limits, actor: Actor) -> None:
    """Limits may change between runs; each change is an event."""
    wanted = limits_data(limits)
    if dict(batch.limits) != wanted:
        control = Control(BatchCommand.CONFIGURE, limits=wanted, reason="limits of the batch file")
        await ledger.control(batch.spec.id, control, actor=actor)


def limits_data(limits: Limits) -> dict[str, Any]:
    """Limits as the ledger keeps them: the names of core.model.Limits, minor units, microseconds."""
    return asdict(limits)


def spool_places(url: str) -> tuple[Path, ...]:
    """Where answers go that the ledger will not take: beside the ledger, then the user's state folder, then /tmp.

    Nothing lies beside a ledger on a server: the state folder is the first place then, since the next start finds it
    whatever its working directory is."""
    _, _, path = url.partition(":")
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "payonce" / "spool"
    last = Path(tempfile.gettempdir()) / f"payonce-spool-{os.getuid()}"
    if not path or path.startswith("//"):
        return state, Path.cwd(), last
    return Path(path).absolute().parent, state, last


@contextlib.contextmanager
def _signals(stop: StopRequest) -> Iterator[None]:
    """SIGTERM and SIGINT ask the run to end; a second one hurries. Only the main thread can watch signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    watched = (signal.SIGTERM, signal.SIGINT)
    for number in watched:
        loop.add_signal_handler(number, stop.signal)
    try:
        yield
    finally:
        for number in watched:
            loop.remove_signal_handler(number)
