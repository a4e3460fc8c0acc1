"""What the documentation shows works: batch files load, the Python example runs, runnable commands run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from payonce.service import batchfile, report, report_plan
from payonce.service.planning import provider_of

ROOT = Path(__file__).parents[2]
NAMES = ("API_TOKEN", "STRIPE_API_KEY", "ADYEN_API_KEY", "PAYPAL_CLIENT_ID", "PAYPAL_CLIENT_SECRET")
CREDENTIALS = {name: f"{name.lower()}-123456" for name in NAMES}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(language: str) -> list[tuple[str, str]]:
    """All fenced blocks of one language: page and text."""
    return [
        (page.name, block)
        for page in PAGES
        for block in re.findall(
            rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
    ]


@pytest.mark.parametrize(("page", "block"), blocks("toml"), ids=lambda value: value[:30])
def test_batch_files_load(tmp_path: Path, page: str, block: str) -> None:
    """A whole batch file builds its provider; a part of one is checked inside a whole one."""
    path = tmp_path / "batch.toml"
    if "[batch]" in block:
        path.write_text(block)
        provider = provider_of(batchfile.load(path), environ=CREDENTIALS)
        assert provider.declaration.key is not None
        # Adyen and PayPal offer no look-up.
        assert provider.declaration.lookup is not None or provider.declaration.kind in ("adyen", "paypal")
        return
    rest = '[batch]\nid = "b"\noperation = "refund"\ninput = "i.csv"\n[item]\nid = "id"\n[provider]\nkind = "http"\n'
    path.write_text(rest + block)
    batchfile.load(path)


@pytest.mark.parametrize(("page", "block"), blocks("python"), ids=lambda value: value[:30])
def test_python_examples_run(tmp_path: Path, page: str, block: str) -> None:
    """In a folder of their own, by themselves, and a second time: whoever tries an example tries it twice."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", block],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=_environment(tmp_path),
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("page", "block"), blocks("sh runnable"), ids=lambda value: value[:30])
def test_runnable_commands_run(tmp_path: Path, page: str, block: str) -> None:
    """Line by line in one shell that stops at the first fault."""
    shell = ["bash", "-euc", f'payonce() {{ "{sys.executable}" -m payonce "$@"; }}\n{block}']
    done = subprocess.run(
        shell, cwd=tmp_path, capture_output=True, text=True, check=False, env=_environment(tmp_path), timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_the_first_batch_takes_some_twenty_lines() -> None:
    """What the README promises of its first batch file."""
    page, block = blocks("toml")[0]
    assert page == "README.md"
    assert len(block.splitlines()) <= 22


def documented_fields() -> set[str]:
    text = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    return set(re.findall(r'"(\w+)"', text)) | set(re.findall(r"`(\w+)`", text))


def test_json_fields_are_documented() -> None:
    """Every field that the functions behind the JSON contract write."""
    source = Path(report.__file__).read_text(encoding="utf-8") + Path(report_plan.__file__).read_text(encoding="utf-8")
    written = set(re.findall(r'^\s+"(\w+)":', source, flags=re.MULTILINE))
    assert written - {"body"} <= documented_fields()


def test_json_shapes_in_the_contract_are_json() -> None:
    """The examples that are whole documents can be read."""
    text = (ROOT / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    document = re.search(r'^    (\{"batch": "refunds-2026-11", "state".*?\})\n\n', text, flags=re.MULTILINE | re.DOTALL)
    assert document
    assert json.loads(document[1])["items"]["total"] == 1000


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PAYONCE_LEDGER": f"sqlite:{folder}/payonce.db"}
