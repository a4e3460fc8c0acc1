"""Keeps a world's books in a file, so that a simulator inside a process survives the death of that process.

One line is one transaction, written in a single call straight to the operating system: after a kill -9 a line is
there, or it is not, or (torn) it is cut off and counts as not there. There is no fsync: this is a test double, and a
power cut is not what it is for. One process at a time; a second one is refused.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import orjson

from payonce.providers.simulator.behaviours import Charge
from payonce.providers.simulator.faults import Kind
from payonce.providers.simulator.requests import Request
from payonce.providers.simulator.store import Effect, KeyEntry, Scheduled, Transaction

try:
    import fcntl
except ImportError:  # pragma: no cover - not on Windows, where a second process is not noticed
    fcntl = None  # type: ignore[assignment]


class JournalError(RuntimeError):
    """The state file cannot be used: another process has it, or a line in its middle is damaged."""


class Journal(Protocol):
    """Where transactions go before their effects are told to anyone."""

    def append(self, change: Transaction) -> None:
        """Keeps the transaction."""

    def clear(self) -> None:
        """Forgets everything."""

    def close(self) -> None:
        """Lets others have it."""


class FileJournal:
    """A journal in a file of JSON lines. Raises JournalError where another process has the file open."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        if fcntl is not None:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(self._fd)
                raise JournalError(f"{path}: another process uses this simulator state") from error

    def read(self) -> Iterator[Transaction]:
        """Every whole transaction, in order; a torn last line is cut off the file.

        Raises JournalError where a line before the last one cannot be read.
        """
        content = self._path.read_bytes()
        good = 0
        for number, line in enumerate(content.splitlines(keepends=True), start=1):
            try:
                if not line.endswith(b"\n"):
                    raise ValueError("cut off")
                change = _decode(orjson.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                if good + len(line) < len(content):
                    raise JournalError(f"{self._path}: line {number} is damaged: {error}") from error
                break
            good += len(line)
            yield change
        if good < len(content):
            os.ftruncate(self._fd, good)

    def append(self, change: Transaction) -> None:
        """Writes the transaction as one line. Raises OSError; then the transaction must count as not made."""
        line = orjson.dumps(_encode(change)) + b"\n"
        written = os.write(self._fd, line)
        if written != len(line):
            raise OSError(f"{self._path}: only {written} of {len(line)} bytes written")

    def clear(self) -> None:
        """Empties the file."""
        os.ftruncate(self._fd, 0)

    def close(self) -> None:
        """Gives the file back; harmless when repeated. Nothing is lost without it."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


def _encode(change: Transaction) -> dict[str, Any]:
    return {
        entry.name: value for entry in dataclasses.fields(change) if (value := getattr(change, entry.name)) is not None
    }


def _decode(line: dict[str, Any]) -> Transaction:
    made: dict[str, Any] = dict(line)
    if "effect" in line:
        made["effect"] = Effect(**line["effect"])
    if "key" in line:
        made["key"] = KeyEntry(**line["key"])
    if "scheduled" in line:
        work = dict(line["scheduled"])
        made["scheduled"] = Scheduled(
            **{**work, "kind": Kind(work["kind"]), "request": Request(**work["request"])},
        )
    if "charge" in line:
        made["charge"] = (line["charge"][0], Charge(**line["charge"][1]))
    if "status" in line:
        made["status"] = tuple(line["status"])
    return Transaction(**made)
