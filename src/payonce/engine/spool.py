"""The spool: where answers go that the ledger would not take (SPEC invariant 5).

One file of JSON lines, beside the ledger by default, fsynced record by record. Its space is set aside before the first
call, so that a full disk cannot take it away. If that place fails too, the next one in the list is used (the user's
state folder, the system's temporary folder). The next start takes every record in before anything else; a record is
removed only after the ledger holds it. A torn last line is a record that never was complete and is reported, not used.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import msgspec

from payonce.core.commands import Change
from payonce.core.errors import LedgerError
from payonce.core.money import Money
from payonce.engine.crashpoints import hit

_RESERVE_BYTES: Final = 64 * 1024
_PER_CALL_BYTES: Final = 4 * 1024


@dataclass(frozen=True, slots=True)
class Spooled:
    """One answer: what was to be written for which item, in which generation, step and attempt."""

    ledger: str
    batch: str
    item: str
    n: int
    generation: int
    step: int
    change: Change
    attempt: int | None = None


def _encode(value: Any) -> Any:
    if isinstance(value, Money):
        return {"minor": value.minor, "currency": value.currency}
    raise TypeError(f"{type(value).__name__} cannot be spooled")


def _decode(kind: type, value: Any) -> Any:
    if kind is Money:
        return Money.of_minor(value["minor"], value["currency"])
    raise TypeError(f"{kind.__name__} cannot be read from a spool")


_encoder: Final = msgspec.json.Encoder(enc_hook=_encode)
_decoder: Final = msgspec.json.Decoder(Spooled, dec_hook=_decode)


class Spool:
    """The spool of one ledger and one process. ``places`` are folders in order of preference; ``name`` is the
    ledger's id, which makes the files findable by the next start whichever place they ended in."""

    def __init__(self, places: Sequence[Path], *, name: str) -> None:
        self._places = tuple(places)
        self._name = name
        self._fd: int | None = None
        self._path: Path | None = None
        self._end = 0
        self.written = 0

    @property
    def name(self) -> str:
        """The id of the ledger whose spool it is."""
        return self._name

    def _file(self, folder: Path) -> Path:
        # Never a name that an earlier process may have used: in containers the pid is often the same each time.
        return folder / f"{self._name}.{uuid4().hex}.spool"

    def reserve(self, *, concurrency: int) -> None:
        """Sets space aside for one answer of each call in flight. Failing everywhere raises LedgerError: without a
        spool no call may be sent."""
        size = _RESERVE_BYTES + concurrency * _PER_CALL_BYTES
        faults = []
        for folder in self._places:
            try:
                self._open(folder, size)
            except OSError as fault:
                faults.append(f"{folder}: {fault.strerror}")
            else:
                return
        raise LedgerError(
            f"no place for the spool: {'; '.join(faults)}",
            code="no_spool",
            hint="free some space or make the ledger's folder writable",
        )

    def _open(self, folder: Path, size: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = self._file(folder)
        # Under another name until it is locked: a file that another process finds is never one that it may take away.
        new = path.with_suffix(".new")
        fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if size:
                allocate = getattr(os, "posix_fallocate", None)
                if allocate is None:
                    os.write(fd, b"\0" * size)
                else:
                    allocate(fd, 0, size)
            os.fsync(fd)
            new.rename(path)
            _sync_folder(folder)
        except OSError:
            os.close(fd)
            new.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            raise
        self._release()
        self._fd, self._path, self._end = fd, path, 0

    def _release(self) -> None:
        """Lets go of the present file as it is."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd = self._path = None

    def write(self, record: Spooled) -> Path:
        """Makes one answer durable; returns the file. Falls back to the other places; raises LedgerError if all fail
        (the caller then prints the record: nothing else is left to do)."""
        hit("before_spool")
        line = _encoder.encode(record) + b"\n"
        faults = []
        for attempt in (None, *self._places):
            try:
                if attempt is not None:
                    self._open(attempt, 0)
                if self._fd is None or self._path is None:
                    continue
                _write_all(self._fd, line, self._end)
                os.fsync(self._fd)
            except OSError as fault:
                faults.append(str(fault))
                continue
            self._end += len(line)
            self.written += 1
            hit("after_spool")
            return self._path
        raise LedgerError(f"the spool cannot be written: {'; '.join(faults)}", code="spool_failed", hint="see above")

    def close(self) -> None:
        """Gives the reserved space back; a spool nothing was written to disappears."""
        if self._fd is None or self._path is None:
            return
        try:
            if self._end:
                os.ftruncate(self._fd, self._end)
                os.fsync(self._fd)
            else:
                self._path.unlink(missing_ok=True)
        except OSError:
            pass  # the records are durable; only the space behind them is not given back
        finally:
            self._release()

    def waiting(self) -> Iterator[tuple[Path, tuple[Spooled, ...], bool]]:
        """The spool files that earlier processes of this ledger left: path, whole records, and whether a torn one
        was at the end. Files of processes that still run are theirs and are left alone."""
        for folder in self._places:
            for path in sorted(folder.glob(f"{self._name}.*.spool")) if folder.is_dir() else ():
                if path != self._path and not _in_use(path):
                    yield path, *_read(path)


def _write_all(fd: int, data: bytes, at: int) -> None:
    """A full disk may take a part of a write without an error: then the rest is tried, and the error comes."""
    while data:
        count = os.pwrite(fd, data, at)
        data, at = data[count:], at + count


def _sync_folder(folder: Path) -> None:
    """Makes a new name in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _in_use(path: Path) -> bool:
    """Whether the process that writes the file still lives: it holds a lock that ends with it."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return True
    return False


def holds_answers(path: Path) -> bool:
    """Whether a spool file holds anything but the space that was set aside."""
    try:
        with path.open("rb") as file:
            return any(block.strip(b"\0") for block in iter(lambda: file.read(_RESERVE_BYTES), b""))
    except FileNotFoundError:
        return False


def give_back(path: Path) -> bool:
    """Removes a spool file that holds no answer and that no living process writes; False where it is kept."""
    if _in_use(path) or holds_answers(path):
        return not path.exists()
    path.unlink(missing_ok=True)
    return True


def _read(path: Path) -> tuple[tuple[Spooled, ...], bool]:
    records, torn = [], False
    for line in path.read_bytes().split(b"\n"):
        text = line.strip(b"\0")
        if not text:
            continue
        try:
            records.append(_decoder.decode(text))
        except msgspec.MsgspecError:
            torn = True
    return tuple(records), torn
