"""Whole simulated worlds: some new ones each time, and the same one twice. Those that once showed a fault are in test_mutants,
which puts the fault back."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from payonce.testing.simulator import World
from payonce.testing.simulator.__main__ import main
from payonce.testing.simulator.many import worlds

# Processor time for worlds nobody has seen. A failure prints the seed.
NEW_WORLDS_S = float(os.environ.get("PAYONCE_SIMULATE_S", "10"))


def test_new_worlds_keep_every_promise() -> None:
    """Random worlds for a bounded time; a failure names the seed that shows it again."""
    first = random.SystemRandom().randrange(10**9)
    broken = [(v.seed, v.violations) for v in worlds(first, runs=None, seconds=NEW_WORLDS_S) if v.violations]
    assert not broken, f"make simulate SEED={broken[0][0]}: {broken[0][1]}"


def trace_of(seed: int) -> str:
    """The digest of every event of a world."""
    told = hashlib.sha256()
    World(seed, trace=lambda line: told.update(line.encode())).run()
    return told.hexdigest()


def test_a_seed_is_the_same_world_each_time() -> None:
    """Event by event, in another process with another order of sets and dictionaries too."""
    program = "import sys; from tests.simulation.test_worlds import trace_of; print(trace_of(5), trace_of(19))"
    others = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "PYTHONHASHSEED": order},
        ).stdout.split()
        for order in ("1", "2")
    ]
    assert others == [[trace_of(5), trace_of(19)]] * 2


def test_worlds_differ() -> None:
    """Between them the seeds meet every guarantee and kind, kills, look-ups, several processes, and days."""
    verdicts = list(worlds(0, runs=25, seconds=None))
    assert sum(v.kills for v in verdicts) > 10
    assert sum(v.look_ups for v in verdicts) > 10
    assert sum(v.attempts for v in verdicts) > 500
    scenarios = [World(seed).scenario for seed in range(40)]
    assert {scenario.guarantee for scenario in scenarios} == {"both", "keys", "look-up", "none"}
    assert {scenario.kind for scenario in scenarios} == {"mixed", "expiry", "spools", "shared", "clocks", "large"}
    assert max(v.simulated_us for v in verdicts) > 3600 * 10**6


def test_the_command_tells_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    """Worlds, attempts and their rate; and every event where that is asked for."""
    assert main(["--seed", "5", "--runs", "2"]) == 0
    assert "2 worlds, 0 broken" in capsys.readouterr().out
    assert main(["--seed", "5", "--trace"]) == 0
    told = capsys.readouterr().out
    assert "p1 starts" in told and "EXECUTED" in told
