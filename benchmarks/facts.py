"""What every benchmark writes beside its figures: the machine, and the ratios that can be compared between versions."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """What decides the figures, as far as it can be told."""
    return {
        "cores": os.cpu_count(),
        "processor": _processor(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def save(
    out: Path | None, benchmark: str, *, ratios: Mapping[str, Sequence[float]] | None = None, **figures: Any
) -> None:
    """Writes a benchmark's JSON file, where one is asked for.

    ``ratios``: by name one for each round, larger is better; each of two things measured in turn in the same round, so
    that the machine's own speed does not count. The file holds their medians, the figures and the machine."""
    if out is None:
        return
    medians = {name: round(statistics.median(rounds), 3) for name, rounds in (ratios or {}).items()}
    out.parent.mkdir(parents=True, exist_ok=True)
    document = {"benchmark": benchmark, "machine": machine(), "ratios": medians, **figures}
    out.write_text(json.dumps(document, indent=1) + "\n")


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor()
