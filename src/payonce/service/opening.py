"""Which ledger a command means, and opening it for as long as the command needs it.

The order: what the command line says, the environment, the batch file, ``sqlite:payonce.db`` in the working directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from payonce.core.errors import LedgerError, UsageError
from payonce.ledger.connect import connect
from payonce.ledger.protocol import Ledger
from payonce.service import batchfile

DEFAULT_LEDGER = "sqlite:payonce.db"
_NOT_THERE = ("no_ledger", "no_ledger_folder")


@dataclass(frozen=True, slots=True)
class Named:
    """A batch as a person named it, by its id or by its batch file, and the address of its ledger."""

    batch: str
    url: str


def ledger_url(option: str | None, file: str | None = None) -> str:
    """The ledger's address. ``option`` is the command line's, ``file`` the batch file's (absolute)."""
    chosen = option or os.environ.get("PAYONCE_LEDGER")
    if chosen:
        return batchfile.absolute_ledger(chosen, base=Path.cwd())
    return file or batchfile.absolute_ledger(DEFAULT_LEDGER, base=Path.cwd())


def named(batch: str, option: str | None) -> Named:
    """The batch that an argument means: an id, or the path of a batch file, whose ledger then counts too."""
    path = Path(batch)
    if path.suffix == ".toml" and path.is_file():
        file = batchfile.load(path)
        return Named(file.id, ledger_url(option, file.ledger))
    return Named(batch, ledger_url(option))


@contextmanager
def opened(url: str, *, create: bool = False, read_only: bool = False) -> Iterator[Ledger]:
    """The ledger, closed again at the end. Raises UsageError where there is none and ``create`` is false, LedgerError
    where it cannot be read or written."""
    try:
        ledger = connect(url, create=create, read_only=read_only)
    except LedgerError as error:
        if error.code not in _NOT_THERE:
            raise
        # A wrong folder or a misspelt address is a mistake of whoever typed it, not a fault of a ledger.
        raise UsageError(error.message, code=error.code, hint=f"{error.hint}; --ledger URL names another") from None
    try:
        yield ledger
    finally:
        ledger.close()
