"""Looks for the world that shows each mutant soonest: ``python -m tests.simulation.hunt [--write] [NAME ...]``.

Each is hunted with fresh worlds, all kinds as they come, for at most a minute of processor time. The world that shows it
is played once more without it and must be sound. Old faults that fresh worlds meet less often than once a minute (RARE) are
shown by the world that is known, unless they are named. ``--write`` keeps the seeds in ``seeds.py``.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from payonce.testing.simulator import World
from payonce.testing.simulator.many import worlds
from tests.simulation.mutants import MUTANTS, RARE, Mutant
from tests.simulation.seeds import SEEDS

_SECONDS = 60.0


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
    named = [name for name in sys.argv[1:] if not name.startswith("-")]
    names = named or list(MUTANTS)
    survivors, longest, total = 0, 0.0, 0.0
    for name in names:
        started = time.process_time()
        if name in RARE and not named:
            found = hunt(MUTANTS[name], seconds=0.0, seed=SEEDS[name])
        else:
            found = hunt(MUTANTS[name], seconds=_SECONDS)
        took = time.process_time() - started
        longest, total = max(longest, took), total + took
        survivors += found is None
        if found is None:
            text = "SURVIVES"
            SEEDS.pop(name, None)
        else:
            SEEDS[name] = found[0]
            how = "known" if name in RARE and not named else f"after {found[2]} worlds"
            text = f"seed {found[0]} {how}: {found[1]}"
            if World(found[0]).run().violations:
                text += " BUT IS NOT SOUND WITHOUT IT"
                survivors += 1
        print(f"{name:32} {took:5.1f}s  {text}", flush=True)
    print(f"{len(names)} mutants, {survivors} survive; at most {longest:.1f} s, {total:.0f} s in all")
    if "--write" in sys.argv:
        _write()
    return 1 if survivors else 0


def _write() -> None:
    lines = [f'    "{name}": {SEEDS[name]},' for name in MUTANTS if name in SEEDS]
    text = '"""For each mutant a world that shows it: found by hunting (tests.simulation.hunt), played by every test run."""\n\n'
    Path(__file__).with_name("seeds.py").write_text(text + "SEEDS = {\n" + "\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())
