"""The file of a JSON Lines ledger: locked by one process, appended to group by group, one fsync each.

States of an open file. *Whole*: everything up to ``end`` was acknowledged. *Open group*: some lines behind ``end`` are
in a buffer or in the file, nothing of them counts. *Failed*: a write or an fsync went wrong, what is in the file behind
``end`` is not known; it is cut off if that still works, and nothing is ever appended again through this object. A
process that is killed at any instant leaves the file whole, with a torn group at most behind it.
"""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import orjson

from payonce.core.errors import LedgerError
from payonce.ledger.jsonl_frames import HEADER, Chain, Group, Torn, groups
from payonce.ledger.sqlite_errors import faults

FORMAT: Final = 1
LOCK_TIMEOUT_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.05
_SPILL: Final = 4 << 20


class JsonlFile:
    """An existing file. With ``write``, this process is the only one that has it for writing, until it is closed."""

    def __init__(self, path: Path, *, write: bool, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        self.path = path
        self._write = write
        self.end = 0
        self._line = 1
        self._digest = ""
        self._chain = Chain("")
        self._buffer = bytearray()
        self._spilled = 0
        self._lines = 0
        self.failed: str | None = None
        with faults(path):
            self._fd = os.open(path, (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC)
            try:
                if write:
                    _lock(self._fd, path, lock_timeout_s)
                refuse_foreign(self._fd, path)
                self._identity = _identity(os.fstat(self._fd))
            except BaseException:
                os.close(self._fd)
                raise

    @classmethod
    @contextmanager
    def reading(cls, path: Path) -> Iterator[JsonlFile]:
        """The file, for reading only, for a while."""
        file = cls(path, write=False)
        try:
            yield file
        finally:
            file.close()

    def close(self) -> None:
        """Releases file and lock; an open group is lost, as it must be."""
        with suppress(OSError):
            os.close(self._fd)

    # reading

    def fresh(self) -> Iterator[Group]:
        """The whole groups behind those that were read or written so far. Raises LedgerError where one is damaged.

        What is torn is left alone by who only reads (somebody may be writing it), and cut off by ``mend``."""
        name = str(self.path)
        with faults(self.path), os.fdopen(os.dup(self._fd), "rb", buffering=1 << 20) as file:
            for found in groups(file, at=self.end, line=self._line, digest=self._digest, name=name):
                if isinstance(found, Torn):
                    break
                yield found
                self.end, self._digest = found.end, found.digest
                self._line += len(found.lines) + 1
        self._chain = Chain(self._digest)

    def grown(self) -> bool:
        """Whether the file has more than was read."""
        return os.fstat(self._fd).st_size > self.end

    def replaced(self) -> bool:
        """Whether the path leads to another file by now, or to none."""
        try:
            return _identity(self.path.stat()) != self._identity
        except OSError:
            return True

    def read(self, at: int, length: int) -> bytes:
        """Some bytes of a whole group."""
        with faults(self.path):
            return os.pread(self._fd, length, at)

    def mend(self) -> tuple[int, Path] | None:
        """Cuts a torn group off, once it is kept in a file of its own beside: how many bytes, and where. None where
        there is none. Only for the writing process, after ``fresh`` has gone through everything."""
        with faults(self.path):
            size = os.fstat(self._fd).st_size
            if size == self.end:
                return None
            stump = os.pread(self._fd, size - self.end, self.end)
            kept = self.path.with_name(f"{self.path.name}.torn-{uuid.uuid4().hex[:12]}")
            with kept.open("xb") as file:
                file.write(stump)
                file.flush()
                os.fsync(file.fileno())
            sync_folder(self.path.parent)
            os.ftruncate(self._fd, self.end)
            os.fsync(self._fd)
            return len(stump), kept

    # writing

    @property
    def has_open_group(self) -> bool:
        """Whether lines were added since the last commit."""
        return bool(self._lines)

    def add(self, line: bytes) -> int:
        """Adds a line (without its end) to the open group; returns where in the file it will be."""
        at = self.end + self._spilled + len(self._buffer)
        self._buffer += line
        self._buffer += b"\n"
        self._lines += 1
        if len(self._buffer) > _SPILL:
            self._spill()
        return at

    def commit(self, meta: dict[str, Any]) -> None:
        """Closes the open group and makes it durable. Raises LedgerError, and then nothing of it counts."""
        assert self._write
        self._refuse_failed()
        if self.replaced():
            raise LedgerError(
                f"ledger {self.path} was replaced or removed while it was open",
                code="ledger_replaced",
                hint="find out what touched the file; then run the same command again",
            )
        lines = self._lines
        try:
            self._chain.take(bytes(self._buffer))
            closing, digest = self._chain.close({"lines": lines, **meta})
            self._buffer += closing
            self._append()
            sync(self._fd)
        except OSError as error:
            self._fail(error)
            raise
        self.end += self._spilled
        self._digest = digest
        self._line += lines + 1
        self._begin()

    def rollback(self) -> None:
        """Forgets the open group."""
        if self._spilled and self.failed is None:
            self._fail(None)
        self._begin()

    def _begin(self) -> None:
        self._chain = Chain(self._digest)
        self._buffer = bytearray()
        self._spilled = self._lines = 0

    def _spill(self) -> None:
        """A large group goes to the file before it is closed, so that it need not fit into the buffer."""
        self._refuse_failed()
        self._chain.take(bytes(self._buffer))
        try:
            self._append()
        except OSError as error:
            self._fail(error)
            raise

    def _append(self) -> None:
        data, at = memoryview(self._buffer), self.end + self._spilled
        # A full disk may take a part of a write without an error: then the rest is tried, and the error comes.
        while data:
            count = os.pwrite(self._fd, data, at)
            data, at = data[count:], at + count
        data.release()
        self._spilled += len(self._buffer)
        self._buffer = bytearray()

    def _fail(self, error: OSError | None) -> None:
        """Cuts off what a failed or forgotten group left in the file. After an error nothing is appended any more:
        what a disk did with a write that it failed cannot be known, and a second fsync may say yes to lost bytes."""
        if error is not None:
            self.failed = error.strerror or str(error)
        try:
            os.ftruncate(self._fd, self.end)
            os.fsync(self._fd)
        except OSError as second:
            self.failed = self.failed or second.strerror or str(second)

    def _refuse_failed(self) -> None:
        if self.failed is not None:
            raise LedgerError(
                f"ledger {self.path}: an earlier write failed ({self.failed}); nothing more is written",
                code="ledger_io",
                hint="check the disk, then run the same command again",
            )


def write_new(path: Path, ledger: str, made: str) -> None:
    """A new, empty ledger under ``path``, which must not exist: its first group, synced."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    with os.fdopen(fd, "wb") as file:
        said = orjson.dumps({"format": FORMAT, "id": ledger, "made": made})
        line = HEADER + said + b"}\n"
        chain = Chain("")
        chain.take(line)
        file.write(line + chain.close({"lines": 1})[0])
        file.flush()
        sync(file.fileno())


def refuse_foreign(fd: int, path: Path) -> None:
    """Raises LedgerError where a file is empty, not a ledger, or of a later format."""
    line, _, _ = os.pread(fd, 1 << 16, 0).partition(b"\n")
    if not line:
        raise LedgerError(
            f"{path} is an empty file, not a ledger",
            code="ledger_empty",
            hint="if a ledger was here it is lost: restore it from a backup; if not, remove the file",
        )
    try:
        said = orjson.loads(line)["$payonce"]["format"] if line.startswith(HEADER) else None
    except (orjson.JSONDecodeError, KeyError, TypeError):
        said = None
    if said is None:
        raise LedgerError(
            f"{path} is not a payonce ledger of JSON lines",
            code="ledger_foreign",
            hint="check the path; nothing was changed",
        )
    if said > FORMAT:
        raise LedgerError(
            f"ledger {path} has format {said}, this payonce knows {FORMAT} at most",
            code="ledger_too_new",
            hint="use the payonce version that wrote it, or a later one",
        )


def sync(fd: int) -> None:
    """Makes a file's contents durable, size included; on macOS in the disk itself too."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        with suppress(OSError):
            fcntl.fcntl(fd, full)
            return
    getattr(os, "fdatasync", os.fsync)(fd)


def sync_folder(folder: Path) -> None:
    """Makes new names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock(fd: int, path: Path, timeout_s: float) -> None:
    """This process alone writes from now on. Raises LedgerError ``ledger_locked`` where another keeps it for longer
    than ``timeout_s``. The lock ends with the process, however it ends."""
    until = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise LedgerError(
                    f"ledger {path} is in use by another process, and a JSON Lines ledger belongs to one at a time",
                    code="ledger_locked",
                    hint="wait for it or stop it, then run the same command again; "
                    "for several processes use a sqlite: or postgresql:// ledger",
                ) from None
            time.sleep(_LOOK_EVERY_S)
        else:
            return


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
