"""Which batch and ledger a command means, and opening the ledger for as long as the command needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from payonce.core.errors import LedgerError, UsageError
from payonce.ledger.connect import connect, path_of, refuse_lost_server
from payonce.ledger.memory import MemoryLedger
from payonce.ledger.place import refuse_lost
from payonce.ledger.postgres_address import is_postgres
from payonce.ledger.protocol import Ledger
from payonce.service.addresses import DEFAULT_LEDGER, absolute_ledger, ledger_url

if TYPE_CHECKING:
    from payonce.service.batchfile import BatchFile

_NOT_THERE = ("no_ledger", "no_ledger_folder")


@dataclass(frozen=True, slots=True)
class Named:
    """A batch as a person named it, by its id or by its batch file, and the address of its ledger."""

    batch: str
    url: str


def named(batch: str, option: str | None) -> Named:
    """The batch that an argument means: an id, or the path of a batch file, whose ledger then counts too.

    Raises ConfigError where a batch file cannot be read or is not there; what ends in .toml is one.
    """
    path = Path(batch)
    if path.suffix == ".toml":
        # Imported here, so that a batch named by its id costs no reading of settings.
        from payonce.service.batchfile import load

        file = load(path)
        return Named(file.id, url_of(file, option))
    return Named(batch, ledger_url(option))


def url_of(file: BatchFile, option: str | None) -> str:
    """The ledger of a batch file: what the command line says, else PAYONCE_LEDGER, else the file, else the
    ``payonce.db`` beside the file.

    Beside the file and not in the working directory, because the same command from another folder must find the same
    ledger: a new one would pay everything again. One in the working directory that holds the batch already is used.
    """
    beside = absolute_ledger(DEFAULT_LEDGER, base=file.base.absolute())
    here = absolute_ledger(DEFAULT_LEDGER, base=Path.cwd())
    if option or os.environ.get("PAYONCE_LEDGER") or file.ledger:
        return ledger_url(option, file.ledger)
    if here != beside and Path(here.partition(":")[2]).is_file() and _holds(here, file.id):
        return here
    return beside


def _holds(url: str, batch: str) -> bool:
    with opened(url, read_only=True) as ledger:
        return bool(ledger.batches(batch))


@contextmanager
def opened_or_blank(url: str) -> Iterator[Ledger]:
    """The ledger, or an empty one in memory where there is none yet: what is not sealed then leaves nothing behind.

    Raises as ``opened`` does, and LedgerPlaceError where a ledger was there and is lost.
    """
    ledger = _blank_or(url)
    try:
        yield ledger
    finally:
        ledger.close()


def _blank_or(url: str) -> Ledger:
    if not is_postgres(url):
        path = _path(url)
        if not path.exists():
            refuse_lost(path)
            return MemoryLedger()
    try:
        return connect(url, create=False)
    except LedgerError as error:
        if error.code != "no_ledger" or not is_postgres(url):
            raise misspelt(error) from None
    refuse_lost_server(url)
    return MemoryLedger()


def _path(url: str) -> Path:
    try:
        return path_of(url)
    except LedgerError as error:
        raise misspelt(error) from None


@contextmanager
def opened(url: str, *, create: bool = False, read_only: bool = False) -> Iterator[Ledger]:
    """The ledger, closed again at the end. Raises UsageError where there is none and ``create`` is false, LedgerError
    where it cannot be read or written."""
    try:
        ledger = connect(url, create=create, read_only=read_only)
    except LedgerError as error:
        raise misspelt(error) from None
    try:
        yield ledger
    finally:
        ledger.close()


def misspelt(error: LedgerError) -> LedgerError | UsageError:
    """A wrong folder or a misspelt address is a mistake of whoever typed it, not a fault of a ledger; all else stays what it
    is."""
    if error.code not in _NOT_THERE:
        return error
    return UsageError(error.message, code=error.code, hint=f"{error.hint}; --ledger URL names another")
