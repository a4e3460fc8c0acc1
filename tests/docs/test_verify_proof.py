"""The independent checker of proofs as a program: one clear verdict and its exit code, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Desk, desk

__all__ = ["desk"]  # the fixture, for pytest to find
CHECKER = Path(__file__).parents[2] / "docs" / "how-to" / "verify_proof.py"


def verdict(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(CHECKER), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_proof_gets_one_line_and_the_right_exit_code(desk: Desk) -> None:
    """As the how-to page says it: a key, a run, a proof, which holds; a forged one does not, nor does a cut one."""
    desk.write(items=2)
    assert desk("run", "batch.toml", "--json").code == 0
    assert desk("trail", "key").code == 0
    assert desk("trail", "prove", "batch.toml", "R1", "--out", "proof.json").code == 0
    good = verdict("proof.json", "payonce.db.key.pub")
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.startswith("the proof holds: ")
    text = Path("proof.json").read_text()
    for forged in (text.replace("10.00", "99.00"), text[:-40], "{}", "[]"):
        Path("forged.json").write_text(forged)
        bad = verdict("forged.json", "payonce.db.key.pub")
        assert (bad.returncode, bad.stdout) == (1, "")
        assert bad.stderr.startswith("the proof does not hold: ")
        assert len(bad.stderr.splitlines()) == 1
    assert verdict("proof.json").returncode == 1
