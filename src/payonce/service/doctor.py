"""Checks what a run will need, without sending anything: versions, clock, disk, ledger, settings, credentials, spool.

Every check is a sentence with a next step. A check that cannot be made says so; it never passes in silence.
"""

from __future__ import annotations

import asyncio
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from payonce.core.errors import PayonceError, UsageError
from payonce.core.events import from_iso
from payonce.core.model import SECOND_US
from payonce.core.wording import some
from payonce.engine.spool import holds_answers
from payonce.ledger.outputs import outputs_of
from payonce.ledger.place import refuse_lost
from payonce.ledger.postgres_address import is_postgres
from payonce.service import large_outputs, planning, running
from payonce.service.batchfile import BatchFile
from payonce.service.opening import opened
from payonce.service.report import event_json

_LITTLE_BYTES: Final = 256 * 1024 * 1024
_MOST_AHEAD_US: Final = 5 * SECOND_US
_LIBRARIES: Final = ("aiohttp", "httptools", "jmespath", "msgspec", "orjson", "click", "rich")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at. ``hint`` is the next step where it is not well."""

    name: str
    ok: bool
    detail: str
    hint: str | None = None


def examine(url: str, file: BatchFile | None, environ: Mapping[str, str]) -> dict[str, Any]:
    """All checks, in the JSON shape: whether all are well, and each of them."""
    checks = list(_checks(url, file, environ))
    return {"ok": all(check.ok for check in checks), "checks": [asdict(check) for check in checks]}


def _checks(url: str, file: BatchFile | None, environ: Mapping[str, str]) -> Iterator[Check]:
    yield _versions()
    yield _guarded("disk", lambda: _disk(url))
    if is_postgres(url):
        yield _guarded("server", lambda: _server(url))
    yield _guarded("ledger", lambda: _ledger(url))
    yield _guarded("clock", lambda: _clock(url))
    yield _guarded("spool", lambda: _spool(url))
    if outputs_of(url).is_there:
        yield _guarded("outputs", lambda: _outputs(url))
    if file is None:
        return
    yield Check("batch file", True, f"{file.path}: batch {file.id}" + "".join(f"; {w}" for w in file.warnings))
    yield _guarded("provider", lambda: asyncio.run(_provider(file, url, environ)))


def _guarded(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except PayonceError as error:
        return Check(name, False, error.message, error.hint or None)
    except OSError as error:
        return Check(name, False, str(error), None)


def _versions() -> Check:
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    detail = f"payonce {version('payonce')}, Python {platform.python_version()}, {platform.platform()}; {libraries}"
    return Check("versions", sys.version_info >= (3, 11), detail)


def _place(url: str) -> Path | None:
    """The folder of a ledger that is a file."""
    _, colon, rest = url.partition(":")
    return Path(rest).absolute().parent if colon and rest and not rest.startswith("//") else None


def _disk(url: str) -> Check:
    folder = _place(url)
    if folder is None:
        return Check("disk", True, "the ledger is not a local file")
    if not folder.is_dir():
        return Check("disk", False, f"the folder {folder} does not exist", f"mkdir -p {folder}")
    free = shutil.disk_usage(folder).free
    detail = f"{free // (1024 * 1024)} MiB free in {folder}"
    if free < _LITTLE_BYTES:
        return Check("disk", False, detail, "free some space: a full disk halts a run, safely")
    return Check("disk", True, detail)


def _server(url: str) -> Check:
    """The server of a ledger that is no file."""
    from payonce.ledger.postgres_check import look

    found = look(url)
    if found.faults:
        return Check("server", False, "; ".join(found.faults), found.hint)
    return Check("server", True, "; ".join(found.facts))


def _ledger(url: str) -> Check:
    folder, path = _place(url), Path(url.partition(":")[2])
    if folder is not None and not path.exists():
        refuse_lost(path.absolute())
        return Check("ledger", True, f"{url} does not exist yet; plan makes it")
    try:
        with opened(url, read_only=True) as ledger:
            info, faults = ledger.info(), ledger.check()
    except UsageError as missing:
        if missing.code != "no_ledger" or not is_postgres(url):
            raise
        return Check("ledger", True, f"{missing.message} yet; plan makes it")
    if faults:
        return Check(
            "ledger", False, "; ".join(faults[:5]), "do not run it; restore it from a backup, see docs/operating.md"
        )
    return Check("ledger", True, f"{info.url}: {some(info.events, 'event')}, schema {info.schema}, sound")


def _outputs(url: str) -> Check:
    """The files of large outputs beside the ledger."""
    with opened(url, read_only=True) as ledger:
        found = large_outputs.look(ledger, url)
    detail = f"{found.count} large outputs, {found.size // (1024 * 1024)} MiB"
    if found.missing:
        named = ", ".join(found.missing[:5])
        return Check(
            "outputs", False, f"{detail}; {len(found.missing)} are missing or damaged: {named}",
            "put the folder of outputs back beside the ledger",
        )  # fmt: skip
    left = f"; nothing refers to {some(found.strays, 'file')}: payonce ledger tidy" if found.strays else ""
    return Check("outputs", True, f"{detail}, all there{left}")


def _clock(url: str) -> Check:
    if is_postgres(url):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return Check("clock", True, f"{now} here; leases and events are on the server's clock")
    folder, path = _place(url), Path(url.partition(":")[2])
    if folder is not None and not path.exists():
        return Check("clock", True, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    with opened(url, read_only=True) as ledger:
        head = ledger.info().events
        latest = ledger.events(after_seq=max(0, head - 1), limit=1)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    at = from_iso(event_json(latest[-1])["at"]) if latest else 0
    if at > time.time_ns() // 1000 + _MOST_AHEAD_US:
        return Check(
            "clock", False, f"{now} is before the ledger's latest event", "set the clock; is time synchronised?"
        )
    return Check("clock", True, now)


def _spool(url: str) -> Check:
    found = [path for folder in running.spool_places(url) if folder.is_dir() for path in folder.glob("*.spool")]
    waiting = [path for path in found if holds_answers(path)]
    if waiting:
        names = ", ".join(str(path) for path in waiting[:5])
        return Check("spool", True, f"answers may wait in {names}; the next run of their ledger takes them in")
    return Check("spool", True, "empty")


async def _provider(file: BatchFile, url: str, environ: Mapping[str, str]) -> Check:
    """Builds the provider, which needs its credentials, and asks it who we are where it can be asked."""
    provider = planning.provider_of(file, environ=environ)
    await provider.open()
    try:
        identity = await provider.identify()
    finally:
        await provider.close()
    who = f"account {identity.account}" if identity.account else "the account is not known"
    mode = f", {identity.mode}" if identity.mode else ""
    return Check("provider", True, f"{provider.declaration.kind}: {who}{mode}. {provider.declaration.guarantee}")
