"""The regression guard: measures the kept ratios again and fails where one has fallen below 0.85 of what was kept.

    python benchmarks/check.py [--rounds 5] [--only NAME ...] [--keep] [--kept FILE.json]

Ratios only, each of two things measured in turn in the same round, so that the machine's own speed does not count; larger
is better. ``--keep`` writes what was measured to the kept ones. Part of the release checklist, not of the tests.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from facts import machine

HERE: Final = Path(__file__).resolve().parent
KEPT: Final = HERE / "kept.json"
LOWEST: Final = 0.85

# What is measured; each writes its ratios under names of their own.
MEASURED: Final[dict[str, list[str]]] = {
    "throughput-20ms": ["throughput.py", "--latency", "20ms", "--items", "20000"],
    "throughput-0ms": ["throughput.py", "--latency", "0ms", "--items", "20000"],
    "throughput-20ms-proof": ["throughput.py", "--latency", "20ms", "--items", "20000", "--proof"],
    "ledger": ["ledger.py"],
    "once": ["once.py"],
}


def ratios(command: list[str], rounds: int) -> dict[str, float]:
    """The median ratios of one benchmark. What it wants at least does not count here."""
    with tempfile.TemporaryDirectory(prefix="payonce-check-") as folder:
        out = Path(folder) / "out.json"
        whole = [sys.executable, str(HERE / command[0]), *command[1:], "--rounds", str(rounds), "--out", str(out)]
        subprocess.run(whole, check=False, timeout=1800)
        if not out.exists():
            sys.exit(f"{command[0]} did not end well")
        found: dict[str, Any] = json.loads(out.read_text())
    return dict(found["ratios"])


def fallen(found: dict[str, float], kept: dict[str, float]) -> list[str]:
    """Prints one line a ratio; returns those that fell too far."""
    low = []
    for name, value in found.items():
        before = kept.get(name)
        if before is not None and value < before * LOWEST:
            low.append(name)
        told = "not kept yet" if before is None else f"kept {before:.3f}{': FALLEN' if name in low else ''}"
        print(f"{name:28}{value:8.3f}  {told}")
    return low


def main() -> None:
    """Exit code 1 where a ratio has fallen too far."""
    parser = argparse.ArgumentParser(description="Compares speed ratios with the kept ones.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=MEASURED, default=list(MEASURED))
    parser.add_argument("--keep", action="store_true", help="keep what was measured")
    parser.add_argument("--kept", type=Path, default=KEPT, help="where the kept ratios are")
    given = parser.parse_args()
    document: dict[str, Any] = json.loads(given.kept.read_text()) if given.kept.exists() else {}
    kept: dict[str, float] = document.get("ratios", {})
    found: dict[str, float] = {}
    for name in given.only:
        found |= ratios(MEASURED[name], given.rounds)
    low = fallen(found, kept)
    if given.keep:
        given.kept.write_text(json.dumps({"machine": machine(), "ratios": kept | found}, indent=1) + "\n")
    sys.exit(1 if low and not given.keep else 0)


if __name__ == "__main__":
    main()
