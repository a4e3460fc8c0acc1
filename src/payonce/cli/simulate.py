"""The command that serves the built-in provider, for trying things out. It moves no money."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from payonce.cli.common import Common, command
from payonce.cli.screen import Screen


@command("simulate")
@click.argument("config", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--allow-remote", is_flag=True, help="Listen on an address that others can reach.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="One behaviour, such as latency=20ms.")
@click.option("--parent-pid", type=int, metavar="PID", help="End when this process is gone.")
@click.pass_obj
def simulate(
    common: Common,
    config: Path | None,
    port: int,
    host: str,
    allow_remote: bool,
    settings: tuple[str, ...],
    parent_pid: int | None,
) -> None:
    """Serve the built-in provider over HTTP until Ctrl-C. Its behaviours come from CONFIG (TOML) and --set.

    The first line of output is its address. What it truly executed: GET /_sim/effects.
    """
    from payonce.service import simulating

    screen = Screen(common)

    def ready(url: str) -> None:
        if common.json:
            screen.document({"url": url})
        else:
            screen.line(url)
            screen.note("what it truly executed: GET /_sim/effects; Ctrl-C ends it")

    where = simulating.Listening(host, port, allow_remote=allow_remote, parent_pid=parent_pid)
    simulating.serve(config, dict(_setting(text) for text in settings), at=where, ready=ready)


def _setting(text: str) -> tuple[str, Any]:
    """``name=value``; the value is TOML where it can be read so (true, 3, {min = "1ms"}), else text."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"--set {text}: write it as NAME=VALUE")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), value
