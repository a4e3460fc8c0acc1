"""Who this process is, and whether another one still lives: user, host, pid, boot and start time of the process.

A pid alone proves nothing (it is used again), so the start time goes with it. Where something cannot be told, the
answer is "cannot tell": then only the end of its lease makes a worker dead.
"""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import sys
import time
from functools import lru_cache
from pathlib import Path

from payonce.core.model import Actor

_PROC = Path("/proc")


def wall_clock() -> int:
    """Microseconds since the epoch by the machine's clock; may jump."""
    return time.time_ns() // 1000


def this_actor(*, program: str = "payonce") -> Actor:
    """The actor of the running process."""
    return Actor(
        user=_user(),
        host=socket.gethostname(),
        pid=os.getpid(),
        program=program,
        boot=_boot(),
        pid_start=start_of(os.getpid()) or "",
    )


def is_alive(actor: Actor) -> bool | None:
    """Whether an actor's process lives: True or False where that is certain, None where it cannot be seen from here.

    Certain only on the same host, in the same boot and the same process namespace (another container's processes are
    invisible, not dead).
    """
    if not actor.pid or actor.host != socket.gethostname() or not actor.boot or actor.boot != _boot():
        return None
    try:
        os.kill(actor.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # it exists and belongs to someone else
    started = start_of(actor.pid)
    if started is None or not actor.pid_start:
        return None
    return started == actor.pid_start


def steady_now(actor: Actor) -> int | None:
    """What the actor's steady clock (suspended time included) shows now, in microseconds; None unless it ran on this host
    in this boot."""
    if not actor.boot or actor.boot != _boot() or actor.host != socket.gethostname():
        return None
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1000


def is_elsewhere(actor: Actor) -> bool:
    """Whether an actor is on another machine: another host name, and not this machine's boot."""
    if not actor.host or actor.host == socket.gethostname():
        return False
    return not actor.boot or actor.boot.partition("/")[0] != _boot().partition("/")[0]


def start_of(pid: int) -> str | None:
    """When a process started, as an opaque text that differs for a later process with its number; None if unknown.

    A zombie is gone: it can send nothing any more.
    """
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return _start_by_ps(pid) if not _PROC.exists() else None
    # Field 2 is the command in brackets and may hold anything; state is field 3, the start time field 22.
    fields = stat.rpartition(")")[2].split()
    return "gone" if fields[0] in "ZX" else fields[19]


def _start_by_ps(pid: int) -> str | None:
    """macOS and other systems without /proc."""
    try:
        out = subprocess.run(  # noqa: S603
            ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return out.stdout.strip() or None


@lru_cache(maxsize=1)
def _boot() -> str:
    """This boot of this machine and this process namespace; empty where neither can be told."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot[:18]}/{(_PROC / 'self/ns/pid').readlink().name.strip('pid:[]')}"
    except OSError:
        pass
    if sys.platform == "darwin":
        try:
            out = subprocess.run(
                ["/usr/sbin/sysctl", "-n", "kern.boottime"], capture_output=True, text=True, timeout=5, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return out.stdout.split("}")[0].strip("{ ")
    return ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry for this uid, as in many containers
        return f"uid {os.getuid()}" if hasattr(os, "getuid") else ""
