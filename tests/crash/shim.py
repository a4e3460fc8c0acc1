"""System calls of a real process that fail with a chosen error: a small library in C, compiled when it is first needed.

Needs gcc and a Linux C library; elsewhere the tests that use it skip and say why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Shim:
    """What a process is given in its environment, and the switch."""

    library: Path
    switch: Path

    @classmethod
    def built(cls, folder: Path) -> Shim:
        """Compiled into a folder. Skips loudly where that cannot be done."""
        library, source = folder / "shim.so", Path(__file__).with_name("shim.c")
        if not sys.platform.startswith("linux") or shutil.which("gcc") is None:
            pytest.skip("needs gcc on Linux: failing system calls are then only a wrapped store's")
        command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
        return cls(library, folder / "fails")

    @property
    def env(self) -> dict[str, str]:
        """For the process whose calls are to fail."""
        return {"LD_PRELOAD": str(self.library), "PAYONCE_SHIM": str(self.switch)}

    def fails(self, call: str, error: int, part: str, *, first: int = 1, count: int = 0) -> None:
        """From now on a ``write`` or ``sync`` of files with ``part`` in their path fails: all of them, or ``count`` from the
        ``first`` that a process makes."""
        new = self.switch.with_suffix(".new")
        new.write_text(f"{call} {error} {part} {first} {count}\n")
        new.chmod(0o644)
        os.replace(new, self.switch)

    def mend(self) -> None:
        """Everything works again."""
        self.switch.unlink(missing_ok=True)
