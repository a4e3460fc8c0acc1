"""The regression guard: measures the kept ratios again and fails where one has fallen below 0.85 of what was kept.

    python benchmarks/check.py [--rounds 5] [--keep]

Ratios only, each of two things measured in turn in the same round, so that the machine's own speed does not count.
``--keep`` writes what was measured to benchmarks/kept.json. Part of the release checklist, not of the tests.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
KEPT: Final = HERE / "kept.json"
LOWEST: Final = 0.85

# Each: the command, and where its JSON file holds one ratio a round.
MEASURED: Final[dict[str, list[str]]] = {
    "throughput_20ms": ["throughput.py", "--latency", "20ms", "--items", "20000"],
    "throughput_0ms": ["throughput.py", "--latency", "0ms", "--items", "20000"],
    "ledger_alone": ["ledger.py"],
}


def ratio(command: list[str], rounds: int) -> float:
    """The median ratio of one benchmark."""
    with tempfile.TemporaryDirectory(prefix="payonce-check-") as folder:
        out = Path(folder) / "out.json"
        whole = [sys.executable, str(HERE / command[0]), *command[1:], "--rounds", str(rounds), "--out", str(out)]
        subprocess.run(whole, check=True, timeout=1800)
        found: dict[str, Any] = json.loads(out.read_text())
    return statistics.median(one["ratio"] for one in found["rounds"])


def main() -> None:
    """One line a ratio; exit code 1 where one has fallen too far."""
    parser = argparse.ArgumentParser(description="Compares speed ratios with the kept ones.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", action="store_true", help="write what was measured to benchmarks/kept.json")
    given = parser.parse_args()
    kept: dict[str, float] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    found = {name: round(ratio(command, given.rounds), 3) for name, command in MEASURED.items()}
    fallen = False
    for name, value in found.items():
        before = kept.get(name)
        too_low = before is not None and value < before * LOWEST
        fallen |= too_low
        told = "not kept yet" if before is None else f"kept {before:.2f}{': FALLEN' if too_low else ''}"
        print(f"{name:20}{value:8.2f}  {told}")
    if given.keep:
        KEPT.write_text(json.dumps(found, indent=1) + "\n")
    sys.exit(1 if fallen and not given.keep else 0)


if __name__ == "__main__":
    main()
