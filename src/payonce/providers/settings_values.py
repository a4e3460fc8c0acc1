"""Values as a provider's table writes them, turned into exact whole numbers; and errors that name the bad setting."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, Literal, NoReturn, TypeVar, get_args, get_origin

import msgspec

from payonce.core.durations import DURATION_FORM, duration_us
from payonce.core.errors import ConfigError

T = TypeVar("T", bound=msgspec.Struct)

_UNKNOWN: Final = re.compile(r"^Object contains unknown field `(.*)`$", re.DOTALL)
_MISSING: Final = re.compile(r"^Object missing required field `(.*)`$", re.DOTALL)
_ENUM: Final = re.compile(r"^Invalid enum value (.*)$", re.DOTALL)
_AT: Final = re.compile(r"^(.*?)(?: - at `\$(.*)`)?$", re.DOTALL)


class Duration(int):
    """A duration in microseconds, written ``"500ms"``, ``"10s"``, ``"24h"`` or ``"45d"``."""


def read(table: Mapping[str, Any], struct: type[T], *, place: str = "provider") -> T:
    """The table as its struct. Raises ConfigError ``bad_setting`` naming the setting and what is allowed there."""
    try:
        return msgspec.convert(dict(table), type=struct, dec_hook=_hook)
    except msgspec.ValidationError as error:
        _refuse(error, struct, place)


def _hook(kind: type[Any], value: object) -> object:
    if kind is Duration:
        if not isinstance(value, str):
            raise ValueError(f"expected {DURATION_FORM}")
        return Duration(duration_us(value))
    raise NotImplementedError(kind)


def _refuse(error: msgspec.ValidationError, struct: type[msgspec.Struct], place: str) -> NoReturn:
    parts = _AT.match(str(error))
    assert parts is not None
    why, path = parts[1], (parts[2] or "").replace("[...]", "")
    where = f"[{place}{path}]" if not path or _is_table(struct, path) else f"[{place}]{path.replace('.', ' ', 1)}"
    unknown = _UNKNOWN.match(why)
    missing = _MISSING.match(why)
    if unknown:
        known = _names_at(struct, path)
        near = get_close_matches(unknown[1], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
        raise bad_setting(f"{where} has no setting {unknown[1]!r}", hint=hint)
    if missing:
        raise bad_setting(f"{where} lacks {missing[1]!r}", hint=f"add {missing[1]} = ... to {where}")
    allowed = _allowed_at(struct, path)
    if allowed and (value := _ENUM.match(why)):
        raise bad_setting(f"{where} cannot be {value[1]}", hint=f"one of {', '.join(allowed)}")
    raise bad_setting(f"{where}: {why[0].lower()}{why[1:]}", hint=f"known here: {', '.join(_names_at(struct, path))}")


def _is_table(struct: type[msgspec.Struct], path: str) -> bool:
    return _struct_at(struct, path) is not None


def _names_at(struct: type[msgspec.Struct], path: str) -> list[str]:
    found = _struct_at(struct, path) or _struct_at(struct, path.rpartition(".")[0]) or struct
    return [f.encode_name for f in msgspec.structs.fields(found)]


def _allowed_at(struct: type[msgspec.Struct], path: str) -> list[str]:
    """The words that the setting at a path may be, as TOML writes them; none where it is no choice of words."""
    holder, _, name = re.sub(r"\[\d*\]", "", path).rpartition(".")
    found = _struct_at(struct, holder) or struct
    kind = next((f.type for f in msgspec.structs.fields(found) if f.encode_name == name), None)
    return [f'"{word}"' for word in sorted(_words_in(kind))]


def _words_in(kind: Any) -> set[str]:
    if get_origin(kind) is Literal:
        return {word for word in get_args(kind) if isinstance(word, str)}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {str(member.value) for member in kind}
    return {word for part in get_args(kind) for word in _words_in(part)}


def _struct_at(struct: type[msgspec.Struct], path: str) -> type[msgspec.Struct] | None:
    """The struct that a path such as ``.lookup`` or ``.answers[2]`` leads to; None where it leads to a plain value."""
    current = struct
    for name in re.sub(r"\[\d*\]", "", path).split("."):
        if not name:
            continue
        kind = next((f.type for f in msgspec.structs.fields(current) if f.encode_name == name), None)
        inner = _struct_in(kind)
        if inner is None:
            return None
        current = inner
    return current


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    for part in getattr(kind, "__args__", ()):
        if (found := _struct_in(part)) is not None:
            return found
    return None


def bad_setting(message: str, *, hint: str) -> ConfigError:
    """The error of a setting that cannot be used as it is. Values of credentials must not be in either text."""
    return ConfigError(message, code="bad_setting", hint=hint)
