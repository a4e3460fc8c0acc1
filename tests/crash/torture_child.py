"""Runs of ``payonce`` as child processes that are quick to start: forked from a process that has everything imported.

A forked run is a process of its own that dies like any other; what it saves is half a second of imports. Some are
started as a shell would, through the command itself.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Protocol

import payonce.cli.run
import payonce.providers.registry_http
import payonce.service.running
import payonce.service.shortcuts  # noqa: F401
from payonce.cli.main import main
from payonce.engine import crashpoints


class Process(Protocol):
    """What is done with a run."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float) -> int: ...

    def send_signal(self, sig: int) -> None: ...


class Forked:
    """A child that runs ``payonce ARGS``."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code, or minus the signal that ended it; None while it lives."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def wait(self, timeout: float) -> int:
        """Waits for its end. Raises subprocess.TimeoutExpired."""
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("payonce", timeout)
            time.sleep(0.005)
        return code

    def send_signal(self, sig: int) -> None:
        """To the child alone, and only while it is ours."""
        if self.poll() is None:
            os.kill(self.pid, sig)


def fork(args: list[str], *, folder: Path, env: dict[str, str], log: Path, file_limit: int | None) -> Forked:
    """Starts a run in a forked child. The caller has no threads."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Forked(pid)
    code = 70
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(env)
        random.seed()
        _arm(env.get("PAYONCE_CRASH_AT"))
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
        sys.argv = ["payonce", *args]
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _arm(spec: str | None) -> None:
    """What the environment does at import: the crash point wanted, in every module that passes one."""
    killer = crashpoints._Killer(spec) if spec else crashpoints._nothing
    for module in list(sys.modules.values()):
        if module.__name__.startswith("payonce.") and getattr(module, "hit", None) is crashpoints._nothing:
            module.hit = killer  # type: ignore[attr-defined]


def start(args: list[str], *, folder: Path, env: dict[str, str], log: Path, file_limit: int | None) -> Process:
    """Starts a run through the command itself."""
    limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))) if file_limit else None  # type: ignore[type-var]
    with log.open("w") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "payonce", *args],
            stdout=out,
            stderr=out,
            cwd=folder,
            env=env,
            preexec_fn=limit,
        )


def end(process: Process) -> None:
    """SIGKILL."""
    process.send_signal(signal.SIGKILL)
