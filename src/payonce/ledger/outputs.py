"""Large outputs: files beside the ledger, each named by the SHA-256 of what it holds, durable before the commit is.

A ledger of many small rows stays quick; an answer of many megabytes would not let it. What is larger than ``INLINE_BYTES``
goes to ``LEDGER.outputs/ab/abcd...``, and the commit holds its digest and size under ``kept.$output``, which is in the
trail. A crash before the commit leaves a file that nothing refers to, never a commit without its file. Whoever writes such
files holds the folder until it closes, so that none of them is taken for a left one (``OutputFiles.alone``).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, Final
from uuid import uuid4

from payonce.core.commands import Change
from payonce.core.errors import LedgerError, UsageError

# Where ``kept`` says which file an output is in. Names with a $ are payonce's own.
OUTPUT: Final = "$output"
INLINE_BYTES: Final = 256 * 1024


class OutputFiles:
    """The files of one ledger. ``folder`` is made when the first one is written; None: outputs stay in the ledger."""

    def __init__(self, folder: Path | None, *, inline_bytes: int = INLINE_BYTES) -> None:
        self.folder = folder
        self._inline = inline_bytes
        self._held: int | None = None
        self._holding = Lock()

    @property
    def is_there(self) -> bool:
        """Whether any output was ever put into a file."""
        return self.folder is not None and self.folder.is_dir()

    def close(self) -> None:
        """Lets go of the folder: what this process has written into files is committed, or in the spool."""
        with self._holding:
            if self._held is not None:
                os.close(self._held)
            self._held = None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no process writes files into the folder. Raises UsageError ``ledger_busy`` where one does."""
        assert self.folder is not None and self.is_there, "there is a folder"
        handle = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if not _locked(handle):
                raise UsageError(
                    f"a process is writing outputs to {self.folder}",
                    code="ledger_busy",
                    hint="wait for the run to end, or pause the batch",
                )
            yield
        finally:
            os.close(handle)

    def files(self) -> Iterator[tuple[str, Path]]:
        """Every file in the folder with its digest; without one what is left of a file that was being written."""
        for path in sorted(self.folder.glob("*/*")) if self.folder is not None else ():
            yield ("" if path.name.startswith(".") else path.name), path

    def _hold(self) -> None:
        with self._holding:
            if self._held is not None:
                return
            assert self.folder is not None, "outputs go to files only where there is a place for them"
            _make(self.folder)
            handle = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_SH)
            except OSError:
                os.close(handle)
                raise
            self._held = handle

    def takes(self, change: Change) -> bool:
        """Whether a change's output is so large that it goes to a file."""
        return change.output is not None and self.folder is not None and len(change.output) > self._inline

    def set_aside(self, change: Change) -> Change:
        """The change with its large output in a file that is durable; as it was where there is none.

        Raises LedgerError ``output_unwritable`` where the file cannot be made durable: then nothing may be committed.
        """
        if change.output is None or not self.takes(change):
            return change
        digest = hashlib.sha256(change.output).hexdigest()
        self._put(digest, change.output)
        where = {"sha256": digest, "bytes": len(change.output)}
        return replace(change, output=None, kept={**(change.kept or {}), OUTPUT: where})

    def read(self, kept: Mapping[str, Any]) -> bytes | None:
        """The output that ``kept`` refers to; None where it refers to none.

        Raises LedgerError ``output_missing`` where the file is gone or is not what its name says.
        """
        where = kept.get(OUTPUT)
        if not isinstance(where, Mapping):
            return None
        digest = str(where.get("sha256"))
        path = self.path(digest)
        try:
            data = path.read_bytes() if path is not None else b""
        except OSError as error:
            raise _missing(path, error.strerror or "it cannot be read") from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise _missing(path, "it is not what was committed")
        return data

    def path(self, digest: str) -> Path | None:
        """Where the output of a digest is."""
        return None if self.folder is None else self.folder / digest[:2] / digest

    def remove(self, digest: str) -> None:
        """Takes a file away: what it held was erased. One that is gone already is no error."""
        path = self.path(digest)
        if path is not None:
            path.unlink(missing_ok=True)

    def _put(self, digest: str, data: bytes) -> None:
        path = self.path(digest)
        assert path is not None
        part = path.with_name(f".{digest}.{uuid4().hex}")
        try:
            self._hold()
            _make(path.parent)
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            _sync(path.parent)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            raise LedgerError(
                f"an output of {len(data)} bytes cannot be written to {path}: {error.strerror}",
                code="output_unwritable",
                hint="free some space or make the folder writable; the answer is in the spool",
            ) from error


def outputs_of(url: str) -> OutputFiles:
    """The large outputs of a ledger: beside it where it is a file; in the ledger itself where it is not."""
    scheme, _, rest = url.partition(":")
    if scheme not in ("sqlite", "jsonl") or not rest or rest.startswith("//"):
        return OutputFiles(None)
    path = Path(rest).expanduser().resolve()
    return OutputFiles(path.with_name(path.name + ".outputs"))


def _locked(handle: int) -> bool:
    """Whether nobody else holds the folder; then it is held until the handle is closed."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make(folder: Path) -> None:
    """A folder and those above it, each durable in its own."""
    if folder.is_dir():
        return
    _make(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync(folder.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _missing(path: Path | None, why: str) -> LedgerError:
    return LedgerError(
        f"the output in {path or 'a file'} is missing: {why}",
        code="output_missing",
        hint="put the folder of outputs back beside the ledger; it belongs to the ledger's backup",
    )
