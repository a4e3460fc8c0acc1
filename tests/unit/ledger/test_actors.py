"""Who is who, and who still lives: with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from payonce.core.model import Actor
from payonce.ledger.actors import is_alive, start_of, this_actor


def _child() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def test_this_process_is_alive() -> None:
    """Under its user, host and pid."""
    me = this_actor()
    assert me.pid == os.getpid() and me.host and me.user
    assert is_alive(me) is True


def test_a_process_that_ended_is_gone_even_before_it_is_reaped() -> None:
    """A zombie sends nothing any more; after the wait its pid is free."""
    child = _child()
    actor = replace(this_actor(), pid=child.pid, pid_start=start_of(child.pid) or "")
    assert is_alive(actor) is True
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert is_alive(actor) is False
    child.wait()
    assert is_alive(actor) is False


def test_a_pid_that_is_used_again_is_another_process() -> None:
    """The start time tells them apart."""
    assert is_alive(replace(this_actor(), pid_start="1")) is False


def test_what_cannot_be_seen_is_not_called_dead() -> None:
    """Another host, another boot or container, a person, an unknown start: nobody can tell from here."""
    me = this_actor()
    for other in (
        replace(me, host="elsewhere", pid=2**22 - 1),
        replace(me, boot="another", pid=2**22 - 1),
        Actor(user="ops", host=me.host),
        replace(me, pid_start=""),
    ):
        assert is_alive(other) is None
