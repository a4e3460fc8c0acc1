"""Looks for the world that shows each mutant soonest: ``python -m tests.simulation.hunt [NAME ...]``."""

from __future__ import annotations

import sys
import time

from payonce.testing.simulator.many import worlds
from tests.simulation.mutants import MUTANTS, Mutant


def hunt(mutant: Mutant, *, seconds: float, seed: int = 0) -> tuple[int, str, int] | None:
    """The first seed that shows it, what was seen, and after how many worlds; None where it survives."""
    with mutant.make():
        started_s = time.process_time()  # the machine may be busy
        for count, verdict in enumerate(worlds(seed, runs=None, seconds=None), start=1):
            if verdict.violations:
                return verdict.seed, verdict.violations[0], count
            if time.process_time() - started_s > seconds:
                break
    return None


def main() -> int:
    """All mutants, or those named."""
    survivors = 0
    for name in sys.argv[1:] or MUTANTS:
        started = time.monotonic()
        found = hunt(MUTANTS[name], seconds=60)
        survivors += found is None
        text = "SURVIVES" if found is None else f"seed {found[0]} after {found[2]} worlds: {found[1]}"
        print(f"{name:32} {time.monotonic() - started:5.1f}s  {text}", flush=True)
    print(f"{len(MUTANTS)} mutants, {survivors} survive")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
