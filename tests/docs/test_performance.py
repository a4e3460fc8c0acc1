"""The benchmarks can be run, leave what is compared between versions, and fill the page about performance."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "performance.md"
# Short runs of those that need no minutes.
SHORT = {
    "once": ["--calls", "3", "--rounds", "1"],
    "ledger": ["--items", "256", "--rounds", "1"],
    "start": ["--rounds", "1"],
    "plan": ["--rows", "200", "--rounds", "1"],
    "throughput": ["--items", "200", "--rounds", "1", "--latency", "0ms"],
    "transports": ["--calls", "200"],
}


def benchmark(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs one of the programs in benchmarks/."""
    command = [sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=240)


@pytest.mark.parametrize("name", SHORT)
def test_a_benchmark_writes_its_figures_and_the_machine(tmp_path: Path, name: str) -> None:
    """A JSON file with the cores, the Python and the ratios; and the table has rows for it."""
    out = tmp_path / f"{name}.json"
    done = benchmark(name, *SHORT[name], "--out", str(out))
    assert out.exists(), done.stderr[-2000:]
    found = json.loads(out.read_text())
    assert found["benchmark"] == name
    assert {"cores", "python", "sqlite"} <= set(found["machine"])
    assert all(ratio > 0 for ratio in found["ratios"].values())
    page = tmp_path / "page.md"
    shutil.copy(PAGE, page)
    table = benchmark("table", "--bench", str(tmp_path), "--write", str(page))
    assert table.returncode == 0, table.stderr[-2000:]
    assert table.stdout.count("\n| ") > 1
    assert table.stdout in page.read_text() and found["machine"]["python"] in page.read_text()


def test_the_page_names_every_benchmark() -> None:
    """Each program that measures something is explained."""
    text = PAGE.read_text()
    measuring = {path.name for path in (ROOT / "benchmarks").glob("*.py")} - {"facts.py", "check.py", "table.py"}
    assert not [name for name in measuring if f"| `{name}` |" not in text]


def test_a_ratio_that_fell_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is compared: below 0.85 of it the check fails; keeping replaces only what was measured."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    check = importlib.import_module("check")
    kept = tmp_path / "kept.json"

    def ended(ratio: float, *more: str) -> object:
        monkeypatch.setattr(check, "ratios", lambda command, rounds: {command[0]: ratio})
        monkeypatch.setattr(sys, "argv", ["check.py", "--only", "once", "--kept", str(kept), *more])
        with pytest.raises(SystemExit) as end:
            check.main()
        return end.value.code

    assert ended(1.0) == 0  # nothing is kept yet
    kept.write_text(json.dumps({"ratios": {"other": 2.0}}))
    assert ended(1.0, "--keep") == 0
    document = json.loads(kept.read_text())
    assert document["ratios"] == {"other": 2.0, "once.py": 1.0} and document["machine"]["cores"]
    assert ended(0.86) == 0
    assert ended(0.84) == 1
    assert ended(0.5, "--keep") == 0
