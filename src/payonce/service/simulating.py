"""Serves the built-in provider. It moves no money; it is for trying things out and for the demonstration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from payonce.core.errors import ConfigError, UsageError
from payonce.providers.simulator import behaviours, server, values


@dataclass(frozen=True, slots=True)
class Listening:
    """Where to serve. With ``parent_pid`` the server also ends once that process is gone."""

    host: str
    port: int
    allow_remote: bool = False
    parent_pid: int | None = None


def serve(config: Path | None, settings: Mapping[str, Any], *, at: Listening, ready: Callable[[str], None]) -> None:
    """Serves until a signal; calls ``ready`` with the address once it listens.

    Behaviours come from the configuration file, then from ``settings``. Without a file no token is asked for: then it
    is being tried out. Raises ConfigError for an unknown behaviour, UsageError where it cannot listen.
    """
    try:
        base = behaviours.load(config) if config else behaviours.parse({"require_auth": False})
        chosen = behaviours.parse(settings, base=base)
        server.serve(
            chosen, at.host, at.port, ready, parent_pid=at.parent_pid, allow_remote=at.allow_remote
        )  # fmt: skip
    except values.ConfigError as error:
        raise ConfigError(
            str(error), code="bad_setting", hint="docs/reference/simulator.md lists the behaviours"
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot serve on {at.host}:{at.port}: {error}", code="cannot_listen", hint="choose another --port"
        ) from error
