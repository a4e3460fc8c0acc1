"""Errors: what, where, next step; JSON where JSON was asked for; never a traceback without ``--debug``."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from payonce.cli import look
from payonce.cli.common import LazyGroup
from payonce.cli.main import cli
from payonce.service import inspecting
from tests.cli.conftest import Desk

ERROR = {"code", "message", "hint", "problems"}


def commands(group: LazyGroup = cli, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every command's words."""
    found: list[tuple[str, ...]] = []
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        found += commands(command, (*path, name)) if isinstance(command, LazyGroup) else [(*path, name)]
    return found


@pytest.mark.parametrize(
    "args",
    [
        ["rnu"],
        ["run"],
        ["run", "none.toml"],
        ["items", "none"],
        ["items", "x", "--state", "paid"],
        ["plan", "batch.toml", "--nonsense"],
        ["status", "--ledger", "mysql:x"],
        ["providers", "strpe"],
        ["simulate", "--set", "latncy=3"],
        ["simulate", "--set", "latency"],
        ["demo", "--items", "5", "--kill-at", "9"],
    ],
)
def test_with_json_an_error_is_one_document(desk: Desk, args: list[str]) -> None:
    """Exit code 2, the four fields, nothing else on standard output; ``--json`` may stand first or last."""
    for given in ([*args, "--json"], ["--json", *args]):
        said = desk(*given)
        assert said.code == 2, said
        assert set(said.json["error"]) == ERROR
        assert said.json["error"]["message"]
        assert "Traceback" not in said.err


def test_a_misspelt_command_gets_the_nearest(desk: Desk) -> None:
    """``did you mean`` is in the message."""
    assert "did you mean 'run'" in desk("rnu").err


def test_text_errors_name_place_and_next_step(desk: Desk) -> None:
    """On standard error, each problem with its line."""
    desk.write(limits='rate = "80"')
    said = desk("plan", "batch.toml")
    assert said.code == 2
    assert said.out == ""
    assert "batch.toml, line 15: limits.rate" in said.err
    assert "next:" in said.err


def test_an_unforeseen_error_is_one_line(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ``--debug`` no traceback but a hint to it; the exit code does not claim what is not known."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("surprise")

    desk.write()
    desk("plan", "batch.toml")
    monkeypatch.setattr(inspecting, "status", broken)
    said = desk("status", "refunds")
    assert said.code == 2
    assert "Traceback" not in said.err
    assert "internal error: RuntimeError: surprise" in said.err
    assert "--debug" in said.err
    assert "Traceback" in desk("status", "refunds", "--debug").err
    assert desk("status", "refunds", "--json").json["error"]["code"] == "internal_error"


def test_once_calls_may_be_out_an_unforeseen_error_is_no_2(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """2 would claim that nothing was sent, 75 would start it again for ever."""
    from payonce.service import running

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("surprise")

    desk.write()
    monkeypatch.setattr(running, "run_sealed", broken)
    said = desk("run", "batch.toml")
    assert said.code == 1
    assert "the same command goes on" in said.err


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_has_help_and_the_common_options(desk: Desk, words: tuple[str, ...]) -> None:
    """``--help`` works everywhere, in words, and lists the options that every command takes."""
    said = desk(*words, "--help")
    assert said.code == 0
    for option in ("--ledger", "--json", "--quiet", "--verbose", "--no-color", "--debug"):
        assert option in said.out
    assert len(said.out.split("Options")[0].splitlines()) > 3


def test_common_options_before_and_after_are_the_same(desk: Desk) -> None:
    """``--ledger`` before the command, after it, and in the environment name the same ledger; the option wins."""
    desk.write()
    assert desk("--ledger", "sqlite:a.db", "plan", "batch.toml").code == 0
    assert desk("status", "refunds", "--ledger", "sqlite:a.db", "--json").json["state"] == "sealed"
    assert desk("--ledger", "sqlite:a.db", "status", "refunds", "--json").json["state"] == "sealed"


def test_the_environment_names_the_ledger(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """PAYONCE_LEDGER beats the batch file, ``--ledger`` beats both."""
    desk.write()
    monkeypatch.setenv("PAYONCE_LEDGER", "sqlite:env.db")
    assert desk("plan", "batch.toml").code == 0
    assert (desk.folder / "env.db").exists()
    assert desk("--ledger", "sqlite:opt.db", "plan", "batch.toml").code == 0
    assert (desk.folder / "opt.db").exists()


def test_help_is_quick() -> None:
    """``payonce --help`` imports neither settings nor drawing nor any client library."""
    code = (
        "import sys\nfrom payonce.cli.main import invoke\ninvoke(['--help'])\n"
        "heavy = {'rich', 'aiohttp', 'msgspec', 'orjson', 'sqlite3', 'asyncio', 'jmespath'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_color_turns_colours_off(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """By option or by environment, even where a terminal would take them."""
    monkeypatch.setattr(look, "Screen", look.Screen)
    desk.write()
    desk("plan", "batch.toml")
    assert "\x1b[" not in desk("status", "refunds", "--no-color").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in desk("status", "refunds").out


def test_a_reader_that_goes_away_ends_the_output_only(desk: Desk) -> None:
    """``payonce items B | head -1``: no complaint, exit code 0."""
    desk.write(items=3000)
    desk("plan", "batch.toml")
    line = f"set -o pipefail; {sys.executable} -m payonce items refunds --json | head -1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, cwd=desk.folder)
    assert done.returncode == 0, done
    assert done.stderr == ""
    assert done.stdout.startswith('{"item":"R1"')


def test_quiet_keeps_warnings_and_errors(desk: Desk) -> None:
    """``--quiet`` silences notes and progress only."""
    desk.write(limits='budget = {USD = "25.00"}')
    said = desk("run", "batch.toml", "--quiet")
    assert said.code == 4
    assert "items to do" not in said.err
    assert "/5 done" not in said.err
