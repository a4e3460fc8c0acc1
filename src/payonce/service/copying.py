"""Moving a ledger to another store: closed here, made whole and verified there, or left as it was."""

from __future__ import annotations

import shutil
import uuid
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from payonce.core.errors import LedgerError, PayonceError, UsageError
from payonce.core.events import iso
from payonce.core.wording import some
from payonce.engine.spool import give_back
from payonce.ledger.actors import this_actor, wall_clock
from payonce.ledger.connect import accept_place, connect
from payonce.ledger.copy_targets import Origin, build, refuse_taken
from payonce.ledger.outputs import outputs_of
from payonce.ledger.postgres_address import is_postgres, parse
from payonce.ledger.protocol import LedgerInfo
from payonce.ledger.sqlite_open import sync
from payonce.ledger.store_reads import StoreLedger
from payonce.service import large_outputs
from payonce.service.addresses import absolute_ledger
from payonce.service.opening import misspelt
from payonce.service.running import spool_places
from payonce.service.trailing import Places, own_checkpoints, trail
from payonce.trail.checkpoint import Signed
from payonce.trail.verify import verify

_FILES: Final = ("sqlite:", "jsonl:")


def copy_to(source: str, target: str) -> dict[str, Any]:
    """Copies the ledger at one address into a new one at another, which goes on with its batches.

    All of it or nothing; where this process dies half-way, the same call goes on. Raises UsageError ``target_exists``,
    ``ledger_busy`` (a worker lives), ``answers_wait`` (a spool must be taken in first), ``outputs_beside`` (large outputs have
    no place there), LedgerError ``copy_differs``.
    """
    here, there = (absolute_ledger(url, base=Path.cwd()) for url in (source, target))
    store = _open_source(here, there)
    if store is None:
        return _told(here, there, _info(there), checkpoints=len(_kept(here)))
    with closing(store):
        info = store.info()
        store.refuse_busy()  # first: the spool of a living worker is its own
        _refuse_waiting(here, info)
        checkpoints = _kept(here)
        refuse_taken(there)
        _refuse_outputs(store, here, there)
        store.leave_for(_shown(there))
        try:
            with trail(here) as reads:
                origin = Origin(
                    info.id, here.partition(":")[2] if here.startswith(_FILES) else info.url, iso(wall_clock())
                )

                def look(url: str) -> None:
                    _verify(url, store.info(), checkpoints)
                    _take_along(here, there)

                store.hand_over(lambda fill: build(there, origin, fill=fill, look=look), trail=reads)
        except BaseException:
            with suppress(PayonceError):
                store.stay()
            raise
        return _told(here, there, info, checkpoints=len(checkpoints))


def _open_source(here: str, there: str) -> StoreLedger | None:
    """The ledger to copy; None where the same copy was made already."""
    try:
        return connect(here, create=False)
    except LedgerError as error:
        if error.code != "ledger_moved_away":
            raise misspelt(error) from None
        with closing(connect(here, create=False, read_only=True)) as store:
            moved_to, ledger = store.moved_to(), store.info().id
        if moved_to != _shown(there):
            raise
        with suppress(LedgerError):
            if _info(there).id == ledger:
                return None
    accept_place(here, actor=this_actor(), reason=f"the copy to {_shown(there)} was cut short and is made again")
    return connect(here, create=False)


def _info(url: str) -> LedgerInfo:
    with closing(connect(url, create=False, read_only=True)) as store:
        return store.info()


def _told(here: str, there: str, info: LedgerInfo, *, checkpoints: int) -> dict[str, Any]:
    with closing(connect(there, create=False, read_only=True)) as store:
        batches = store.batches()
    return {
        "from": _shown(here),
        "to": _shown(there),
        "ledger": info.id,
        "batches": len(batches),
        "items": sum(batch.items for batch in batches),
        "events": info.events,
        "root": info.root,
        "checkpoints": checkpoints,
    }


def _shown(url: str) -> str:
    """An address without a user or password that may be in it."""
    return parse(url).shown if is_postgres(url) else url


def _refuse_waiting(url: str, info: LedgerInfo) -> None:
    """Raises UsageError where answers of an interrupted run are not in the ledger yet. Space that a killed run had set
    aside for answers, and never used, is given back."""
    for folder in spool_places(url):
        for path in folder.glob(f"{info.id}.*.spool") if folder.is_dir() else ():
            if not give_back(path):
                raise UsageError(
                    f"answers wait in {path}, which the ledger does not hold yet",
                    code="answers_wait",
                    hint="run the batch once, which takes them in; then copy the ledger",
                )


def _refuse_outputs(store: StoreLedger, here: str, there: str) -> None:
    """Raises UsageError where the ledger refers to outputs in files beside it and the new store has no place for files."""
    if not outputs_of(here).is_there or outputs_of(there).folder is not None:
        return
    found = large_outputs.look(store, here)
    if found.count:
        raise UsageError(
            f"{some(found.count, 'large output')} of this ledger ({found.size} bytes) {'is' if found.count == 1 else 'are'} in files "
            f"in {outputs_of(here).folder}, and a server has no place for files; nothing was copied",
            code="outputs_beside",
            hint="copy to a sqlite: or jsonl: ledger; or keep this ledger for its results and start new batches on the server",
        )


def _kept(url: str) -> list[Signed]:
    """The ledger's own checkpoints, where its public key is beside it too."""
    return own_checkpoints(url, None, [])


def _verify(url: str, info: LedgerInfo, checkpoints: list[Signed]) -> None:
    with trail(url) as reads:
        found = verify(reads, checkpoints=checkpoints)
    if not found.ok or (found.events, found.root, found.ledger) != (info.events, info.root, info.id):
        said = found.faults[0].as_json() if found.faults else f"the root is {found.root}"
        raise LedgerError(
            f"the copied trail does not verify: {said}",
            code="copy_differs",
            hint="nothing was copied; run payonce trail verify on the ledger itself",
        )


def _take_along(here: str, there: str) -> None:
    """Large outputs, keys and checkpoints, which live beside a ledger."""
    outputs, place = outputs_of(here).folder, outputs_of(there).folder
    if outputs is not None and outputs.is_dir() and place is not None:
        for digest, file in outputs_of(here).files():
            if digest:  # not what a crash left of one that was being written
                _put(file, place / file.parent.name / file.name)
    ours, theirs = Places.of(here), Places.of(there)
    for name in ("checkpoints", "public", "key"):
        kept, new = getattr(ours, name), getattr(theirs, name)
        if kept.is_file() and kept != new:
            _put(kept, new)


def _put(file: Path, place: Path) -> None:
    """A file whole and durable under its new name, with the rights it had."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
    try:
        shutil.copy2(file, part)
        sync(part)
        part.replace(place)
        sync(place.parent)
    finally:
        part.unlink(missing_ok=True)
