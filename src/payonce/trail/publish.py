"""Getting a checkpoint off this machine: into a file, printed, to a command's standard input, or to a timestamp authority.

A checkpoint protects only as far as it is out of reach of whoever could rewrite the ledger. That it could not be
published never stops a payment: it is a warning, and the next checkpoint covers everything the lost one did.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from payonce.trail.appending import append_whole
from payonce.trail.checkpoint import Signed
from payonce.trail.timestamp import stamp

_COMMAND_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class ToFile:
    """Appended to a file, an empty line after each, fsynced."""

    path: Path


@dataclass(frozen=True, slots=True)
class ToOutput:
    """Printed on standard output, or part of the JSON document there."""


@dataclass(frozen=True, slots=True)
class ToCommand:
    """Given to a command on standard input; ``PAYONCE_TRAIL_ORIGIN`` and ``PAYONCE_TRAIL_SIZE`` name it too."""

    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToAuthority:
    """Timestamped by an authority (RFC 3161); its answers are kept in a folder."""

    url: str
    folder: Path


Place = ToFile | ToOutput | ToCommand | ToAuthority


def publish(signed: Signed, places: Iterable[Place], *, show: Callable[[str], None]) -> list[str]:
    """Publishes a checkpoint everywhere; returns a sentence for each place that did not take it."""
    failed = []
    for place in places:
        match place:
            case ToFile(path):
                failed += _to_file(signed, path)
            case ToOutput():
                show(str(signed))
            case ToCommand(argv):
                failed += _to_command(signed, argv, os.environ)
            case ToAuthority(url, folder):
                why = stamp(signed, url=url, folder=folder)
                failed += [why] if why else []
    return failed


def _to_file(signed: Signed, path: Path) -> list[str]:
    try:
        append_whole(path, f"{signed}\n")
    except OSError as error:
        return [f"the checkpoint could not be appended to {path}: {error.strerror}"]
    return []


def _to_command(signed: Signed, argv: tuple[str, ...], environ: Mapping[str, str]) -> list[str]:
    checkpoint = signed.checkpoint
    env = {**environ, "PAYONCE_TRAIL_ORIGIN": checkpoint.origin, "PAYONCE_TRAIL_SIZE": str(checkpoint.size)}
    try:
        done = subprocess.run(  # noqa: S603
            argv,
            input=str(signed).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_COMMAND_TIMEOUT_S,
            check=False,
            env=env,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [f"{argv[0]} did not take the checkpoint: {error}"]
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()[-200:]
        return [f"{argv[0]} did not take the checkpoint: exit {done.returncode} {said}".rstrip()]
    return []
