"""What an outsider gets: the checker of the documentation, the commands, the pages."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import orjson
import pytest

from payonce.cli.main import invoke
from payonce.service import trailing
from payonce.trail.faults import CODES
from tests.unit.trail.trailkit import Books, reworded

DOCS = Path(__file__).parents[3] / "docs"
CHECKER = DOCS / "how-to" / "verify_proof.py"


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Books:
    """A ledger with a key, made by the command."""
    books = Books(tmp_path_factory.mktemp("handed"))
    books.run(60)
    books.close()
    assert invoke(["trail", "key", "--ledger", books.url, "--quiet"]) == 0
    return books


def checker() -> ModuleType:
    """The checker as a module."""
    spec = importlib.util.spec_from_file_location("verify_proof", CHECKER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_independent_checker_is_short_and_needs_nothing() -> None:
    """Under 100 lines, and only the standard library."""
    text = CHECKER.read_text()
    assert len(text.splitlines()) < 100
    assert set(re.findall(r"^(?:import|from) (\w+)", text, re.M)) <= {"base64", "hashlib", "json", "sys"}


def test_the_independent_checker_accepts_a_proof(books: Books, tmp_path: Path) -> None:
    """As a program of its own, isolated from everything that is installed."""
    out = tmp_path / "proof.json"
    assert invoke(["trail", "prove", "refunds", "it-7", "--out", str(out), "--ledger", books.url]) == 0
    public = trailing.Places.of(books.url).public
    command = [sys.executable, "-I", "-S", str(CHECKER), str(out), str(public)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "commit 7.01 re-7" in done.stdout


@pytest.mark.parametrize(
    ("old", "new"),
    [("re-7", "re-8"), ("it-7", "it-8"), ("\\n163\\n", "\\n162\\n"), ("— payonce", "— payonce"), ("A", "B")],
)
def test_the_independent_checker_refuses_a_changed_proof(books: Books, tmp_path: Path, old: str, new: str) -> None:
    """Any text replaced by another."""
    out = tmp_path / "proof.json"
    invoke(["trail", "prove", "refunds", "it-7", "--out", str(out), "--ledger", books.url, "--quiet"])
    key = trailing.Places.of(books.url).public.read_text()
    text = out.read_text()
    changed = text.replace(old, new)
    if changed == text:
        assert checker().check(orjson.loads(text), key)
        return
    with pytest.raises((ValueError, KeyError)):
        checker().check(orjson.loads(changed), key)


def test_the_independent_checkers_signatures_are_ed25519() -> None:
    """The first test vectors of RFC 8032, section 7.1, and a wrong bit in each."""
    vectors = [
        (
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
    ]
    signed = checker().signed
    for public, message, signature in ([bytes.fromhex(part) for part in vector] for vector in vectors):
        assert signed(public, message, signature)
        assert not signed(public, message + b"x", signature)
        assert not signed(public, message, signature[:40] + bytes([signature[40] ^ 1]) + signature[41:])


def test_verify_says_sound_and_then_names_what_was_changed(books: Books, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 0 and 1, and the event, in the JSON document."""
    assert invoke(["trail", "checkpoint", "--ledger", books.url, "--json"]) == 0
    made = orjson.loads(capsys.readouterr().out)
    assert invoke(["trail", "verify", "--ledger", books.url, "--json"]) == 0
    sound = orjson.loads(capsys.readouterr().out)
    assert (sound["ok"], sound["events"], sound["root"]) == (True, made["size"], made["root"])
    assert (sound["checkpoints"], sound["not_checked"]) == (1, [])
    books.tamper(reworded('re-9"', 're-0"', where="seq IN (SELECT seq FROM trail WHERE event LIKE '%\"re-9\"%')"))
    assert invoke(["trail", "verify", "--ledger", books.url, "--json"]) == 1
    found = orjson.loads(capsys.readouterr().out)
    assert [fault["code"] for fault in found["faults"]][:2] == ["changed", "rewritten"] and not found["ok"]
    assert invoke(["trail", "verify", "--ledger", books.url]) == 1
    assert "was changed" in capsys.readouterr().out


def test_every_fault_is_explained() -> None:
    """The how-to page has a row for each code, and none that is not there."""
    page = (DOCS / "how-to" / "verify-the-trail.md").read_text()
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) == set(CODES)
