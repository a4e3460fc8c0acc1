"""Single settings of the simulator, checked: durations, whole numbers, names, flags.

Every reader takes the value and `where` it stands, and raises ConfigError naming that place; nothing is guessed.
The simulator counts time in integer microseconds only, so that two runs with one seed agree to the last digit.
"""

from __future__ import annotations

from typing import TypeVar

from payonce.core import durations

Name = TypeVar("Name", bound=str)


class ConfigError(ValueError):
    """A behaviour of the simulator was asked for in a way that it does not understand; the message names the place."""


def duration_us(value: object, *, where: str) -> int:
    """The duration in microseconds.

    Takes text of a number and a unit (us, ms, s, m, h, d), or the number 0. A fraction (0.4s) must be a whole number of
    microseconds. Raises ConfigError, naming `where`, for anything else: a bare number has no unit and would be a guess.
    """
    if value == 0 and not isinstance(value, bool):
        return 0
    if not isinstance(value, str):
        raise ConfigError(f"{where}: {value!r} is not a duration such as '20ms', '5s' or '24h'")
    try:
        return durations.duration_us(value)
    except ValueError as error:
        raise ConfigError(f"{where}: {value!r} is not a duration: {error}") from None


def duration_range_us(value: object, *, where: str) -> tuple[int, int]:
    """The shortest and the longest duration in microseconds, from "20ms" or {min = "5ms", max = "40ms"}.

    Raises ConfigError where the value is neither, or the shortest is above the longest.
    """
    if not isinstance(value, dict):
        fixed = duration_us(value, where=where)
        return fixed, fixed
    if set(value) != {"min", "max"}:
        raise ConfigError(f"{where}: a range has exactly 'min' and 'max', not {sorted(map(str, value))}")
    low = duration_us(value["min"], where=f"{where}.min")
    high = duration_us(value["max"], where=f"{where}.max")
    if low > high:
        raise ConfigError(f"{where}: min is above max")
    return low, high


def whole(value: object, *, where: str, least: int | None = None) -> int:
    """The whole number. Raises ConfigError for anything else, or for one below `least`."""
    if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
        limit = "" if least is None else f" of at least {least}"
        raise ConfigError(f"{where}: {value!r} is not a whole number{limit}")
    return value


def text(value: object, *, where: str) -> str:
    """The text. Raises ConfigError for anything that is not a non-empty one."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{where}: {value!r} is not a text")
    return value


def flag(value: object, *, where: str) -> bool:
    """True or false. Raises ConfigError for anything else ("false" as text would count as true)."""
    if not isinstance(value, bool):
        raise ConfigError(f"{where}: {value!r} is neither true nor false")
    return value


def one_of(value: object, *, names: tuple[Name, ...], where: str) -> Name:
    """The one of `names` that equals the value. Raises ConfigError with all of them where none does."""
    for name in names:
        if value == name:
            return name
    raise ConfigError(f"{where}: {value!r} is not one of {', '.join(names)}")


def texts(value: object, *, where: str) -> frozenset[str]:
    """The texts of a list. Raises ConfigError for anything else."""
    if not isinstance(value, list):
        raise ConfigError(f"{where}: {value!r} is not a list")
    return frozenset(text(entry, where=where) for entry in value)


def table(value: object, *, where: str) -> dict[str, object]:
    """The table, with text names. Raises ConfigError for anything else."""
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: {value!r} is not a table")
    return {str(name): entry for name, entry in value.items()}


def probability(value: object, *, where: str) -> float:
    """The probability, from 0 to 1. Raises ConfigError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(f"{where}: {value!r} is not a probability between 0 and 1")
    return float(value)
