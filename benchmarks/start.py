"""What it takes to load payonce: processor and wall-clock time of new interpreters, the median of many.

    python benchmarks/start.py [--rounds 15] [--out FILE.json]

Everything is in the file cache after the first round; the bare interpreter's own time is in each figure.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from facts import save

PROGRAMS = {
    "interpreter": ["-c", "pass"],
    "import payonce": ["-c", "import payonce"],
    "payonce --help": ["-m", "payonce", "--help"],
    "import payonce; payonce.once": ["-c", "import payonce; payonce.once"],
}


def started(arguments: list[str]) -> tuple[float, float]:
    """Wall-clock and processor milliseconds of one."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took * 1000, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def main() -> None:
    """One line a program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in PROGRAMS}
    for _ in range(given.rounds + 1):
        for name, arguments in PROGRAMS.items():
            found[name].append(started(arguments))
    programs = {}
    for name, taken in found.items():
        wall, cpu = (statistics.median(one[k] for one in taken[1:]) for k in (0, 1))
        programs[name] = {"ms": round(wall, 1), "cpu_ms": round(cpu, 1)}
        print(f"{name:30}{wall:8.1f} ms   {cpu:8.1f} ms of processor")
    save(given.out, "start", rounds=given.rounds, programs=programs)


if __name__ == "__main__":
    main()
