"""The ``[trail]`` table of a batch file: what is kept of payloads, and how checkpoints are signed and published."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from payonce.core.payloads import PayloadPolicy, default_for
from payonce.service.batchfile import BatchFile
from payonce.service.batchfile_check import Faults, read_table
from payonce.trail.publish import Place, ToAuthority, ToCommand, ToFile, ToOutput

_FORM: Final = (
    'a file, "-" for standard output, {command = ["prog", "arg"]}, {timestamp = "https://..."}, or a list of these'
)
_VARIABLE: Final = re.compile(r"\$\{\w+\}")


class TrailTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is kept of payloads, and how checkpoints are signed and published."""

    payloads: (
        Annotated[Literal["digest", "redacted", "full"], Meta(description='"digest", "redacted" or "full"')] | None
    ) = None
    hide: Annotated[list[str], Meta(description="a list of field names or dotted paths to hide in kept payloads")] = (
        msgspec.field(default_factory=list)
    )
    show: Annotated[list[str], Meta(description="a list of field names or dotted paths to keep when redacting")] = (
        msgspec.field(default_factory=list)
    )
    key: Annotated[str, Meta(min_length=1, description='the private key\'s file, or "${NAME}"')] | None = None
    checkpoint_every: Annotated[int, Meta(ge=1, description="a whole number of events from 1")] = 100_000
    publish: Annotated[Any, Meta(description=_FORM)] = None


@dataclass(frozen=True, slots=True)
class TrailSettings:
    """A checked ``[trail]`` table. ``key`` is an absolute path or ``${NAME}``; None means the ledger's own key if there is
    one. ``checkpoint_every`` counts events."""

    payloads: PayloadPolicy
    key: str | None
    checkpoint_every: int
    publish: tuple[Place, ...]


def read(file: BatchFile) -> TrailSettings:
    """The settings of a batch file. Raises BatchFileError with every wrong one."""
    faults = Faults(file=str(file.path), text=file.path.read_text("utf-8"))
    return _checked(file.trail, file.operation, base=file.base, faults=faults)


def of_mapping(table: Mapping[str, Any], *, operation: str) -> TrailSettings:
    """The same settings as a mapping, relative to the working directory. Raises BatchFileError with every wrong one."""
    return _checked(table, operation, base=Path.cwd(), faults=Faults(file="the trail settings", text=""))


def _checked(stated: Mapping[str, Any], operation: str, *, base: Path, faults: Faults) -> TrailSettings:
    table = read_table(stated, TrailTable, table="trail", faults=faults) or TrailTable()
    places = _places(table.publish, base, faults)
    faults.raise_if_any()
    policy = default_for(operation) if table.payloads is None else PayloadPolicy(table.payloads)
    policy = replace(policy, hide=tuple(table.hide), show=tuple(table.show))
    key = table.key
    if key is not None and not _VARIABLE.fullmatch(key):
        key = str(base / key)
    return TrailSettings(policy, key, table.checkpoint_every, places)


def _places(value: Any, base: Path, faults: Faults) -> tuple[Place, ...]:
    places = []
    for one in value if isinstance(value, list) else [] if value is None else [value]:
        place = _place(one, base)
        if place is None:
            faults.add(f"expected {_FORM}", table="trail", key="publish", value=one, code="bad_setting")
        else:
            places.append(place)
    return tuple(places)


def _place(value: Any, base: Path) -> Place | None:
    match value:
        case "-":
            return ToOutput()
        case str() if value:
            return ToFile(base / value)
        case {"file": str(name), **rest} if name and not rest:
            return ToFile(base / name)
        case {"timestamp": str(url), **rest} if url.startswith(("https://", "http://")) and not rest:
            return ToAuthority(url, base / "timestamps")
        case {"command": [str(), *_] as argv, **rest} if not rest and all(isinstance(a, str) for a in argv):
            return ToCommand(tuple(argv))
        case Mapping():
            return None
        case _:
            return None
