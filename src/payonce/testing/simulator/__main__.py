"""``python -m payonce.testing.simulator``: runs worlds until a promise is broken, or the time is over.

    --seed N      the first seed (a random one without); with no other option this one world alone
    --runs K      at most so many worlds
    --seconds S   at most so many seconds
    --trace       tells every event of each world

Ends with 0 where every promise held, with 1 at the first that did not: then the seed and the command that shows the
same again are printed. The same seed gives the same world, event by event, on every machine.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

from payonce.testing.simulator.many import Tally, worlds


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m payonce.testing.simulator", description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--trace", action="store_true")
    given = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(10**9) if given.seed is None else given.seed
    runs = given.runs or (1 if given.seconds is None and given.seed is not None else None)
    seconds = given.seconds or (60.0 if runs is None else None)
    say(f"worlds from seed {seed} on")
    tally, started_s = Tally(), time.process_time()
    for verdict in worlds(seed, runs=runs, seconds=seconds, trace=say if given.trace else None):
        tally.add(verdict)
        if verdict.violations:
            for violation in verdict.violations:
                say(f"seed {verdict.seed}: {violation}")
            say(f"again, with every event: make simulate SEED={verdict.seed} TRACE=1")
            break
    say(tally.text(time.process_time() - started_s))
    return 1 if tally.broken else 0


def say(text: str) -> None:
    """One line, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
