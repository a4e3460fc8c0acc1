"""Templates: texts and trees with ``{placeholders}``, compiled once, filled for every item. Pure.

The same item and key always give the same bytes. A placeholder that stands alone keeps its value's type in JSON; in a
path every value is percent-encoded; in a header no value may smuggle in another line. ``{{`` and ``}}`` are braces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import quote

from payonce.core.errors import ConfigError
from payonce.core.model import Item
from payonce.core.money import Money
from payonce.core.values import value

_TOKEN: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")


@value
class Context:
    """What an item's placeholders are filled from."""

    item: Item
    key: str | None
    batch: str


Getter = Callable[[Context], Any]


def _money(context: Context) -> Money:
    if context.item.money is None:
        raise ConfigError(
            f"item {context.item.id} has no amount, but the provider's templates use one",
            code="template_unfilled",
            hint="map [item] amount and currency, or take {amount} and {currency} out of the templates",
        )
    return context.item.money


def _key(context: Context) -> str:
    if context.key is None:
        raise ConfigError(
            "the templates use {key}, but the call has no idempotency key",
            code="template_unfilled",
            hint="add a [provider.key] table, or take {key} out",
        )
    return context.key


def _answer_id(context: Context) -> str:
    found = context.item.carry.get("answer_id") or context.item.reference
    if not found:
        raise ConfigError(
            "the provider's id of the call was never seen, so there is nothing to look up by",
            code="no_answer_id",
            hint="the call broke off before its headers arrived; a statement or a person can tell",
        )
    return str(found)


BUILT_IN: Final[Mapping[str, Getter]] = {
    "id": lambda context: context.item.id,
    "target": lambda context: context.item.target,
    "amount": lambda context: _money(context).text,
    "amount_minor": lambda context: _money(context).minor,
    "currency": lambda context: _money(context).currency,
    "currency_lower": lambda context: _money(context).currency.lower(),
    "key": _key,
    "batch": lambda context: context.batch,
    "answer_id": _answer_id,
}


@dataclass(frozen=True, slots=True)
class Names:
    """Which placeholders there are: the built-in ones, and columns of the input.

    ``mapped`` names, for columns that [item] maps, the built-in placeholder each is; it fills in where an item's
    fields do not hold the column itself.
    """

    mapped: Mapping[str, str]

    def getter(self, name: str) -> Getter:
        """How a placeholder is filled."""
        if name in BUILT_IN:
            return BUILT_IN[name]
        stand_in = BUILT_IN.get(self.mapped.get(name, ""))

        def column(context: Context) -> Any:
            fields = context.item.fields
            if name in fields:
                return fields[name]
            if stand_in is not None:
                return stand_in(context)
            raise ConfigError(
                f"item {context.item.id} has no field {name!r}, which the provider's templates use",
                code="template_unfilled",
                hint="give every row the field, or take it out of the templates",
            )

        return column


class Template:
    """One text with placeholders. ``place`` is how errors name it: ``[provider.call] path``."""

    __slots__ = ("_parts", "_single", "names", "place")

    def __init__(self, text: str, *, place: str, names: Names) -> None:
        self.place = place
        found: list[str] = []
        parts: list[str | tuple[str, Getter]] = []
        for part in _split(text, place):
            if isinstance(part, str):
                parts.append(part)
            else:
                found.append(part[0])
                parts.append((part[0], names.getter(part[0])))
        self.names = frozenset(found)
        self._parts = tuple(parts)
        only = parts[0] if len(parts) == 1 else None
        self._single = only[1] if isinstance(only, tuple) else None

    @property
    def constant(self) -> str | None:
        """The text, where it has no placeholder."""
        return None if self.names else "".join(part for part in self._parts if isinstance(part, str))

    def value(self, context: Context) -> Any:
        """The filled template; a placeholder that stands alone keeps its type."""
        return self._single(context) if self._single is not None else self.text(context)

    def text(self, context: Context) -> str:
        """The filled template as text."""
        return "".join(
            part if isinstance(part, str) else self._as_text(part[0], part[1](context), context) for part in self._parts
        )

    def path(self, context: Context) -> str:
        """The filled template as a path and query: values percent-encoded, none empty or a dot segment in the path.

        Raises ConfigError ``template_unfilled`` for a value that would make it another resource's path.
        """
        done = ""
        for part in self._parts:
            if isinstance(part, str):
                done += part
                continue
            value = self._as_text(part[0], part[1](context), context)
            if "?" not in done and value in ("", ".", ".."):
                raise self._unfilled(context, f"{{{part[0]}}} is {value!r}, which cannot stand in a path")
            done += quote(value, safe="")
        return done

    def header(self, context: Context) -> str:
        """The filled template as a header's value: printable ASCII only."""
        value = self.text(context)
        if _HEADER_VALUE.fullmatch(value) is None:
            raise self._unfilled(context, "a header's value may hold printable ASCII characters only")
        return value

    def _as_text(self, name: str, value: Any, context: Context) -> str:
        match value:
            case str():
                return value
            case bool():
                return "true" if value else "false"
            case int():
                return str(value)
            case Decimal():
                return format(value, "f")
            case float():
                return repr(value)
            case _:
                kind = "empty (null)" if value is None else "a list or an object"
                raise self._unfilled(context, f"{{{name}}} is {kind}, which cannot stand inside a text")

    def _unfilled(self, context: Context, why: str) -> ConfigError:
        return ConfigError(
            f"{self.place} cannot be filled for item {context.item.id}: {why}",
            code="template_unfilled",
            hint="correct the input or the template",
        )


def _split(text: str, place: str) -> Iterator[str | tuple[str]]:
    """Literal texts and one-tuples of placeholder names, in order."""
    literal = ""
    start = 0
    for token in _TOKEN.finditer(text):
        literal += text[start : token.start()]
        start = token.end()
        match token[0]:
            case "{{" | "}}" as doubled:
                literal += doubled[0]
            case "{" | "}" as lone:
                raise ConfigError(
                    f"{place} has a {lone!r} without its partner",
                    code="bad_template",
                    hint=f"write {lone}{lone} for a brace that is meant as such",
                )
            case _:
                name = (token[1] or "").strip()
                if not name:
                    raise ConfigError(
                        f"{place} has an empty placeholder {{}}",
                        code="bad_template",
                        hint="name a column, or write {{}}",
                    )
                if literal:
                    yield literal
                literal = ""
                yield (name,)
    literal += text[start:]
    if literal:
        yield literal


def check_names(templates: Collection[Template], *, columns: Collection[str], mapped: Mapping[str, str]) -> None:
    """Raises ConfigError ``unknown_placeholder`` for the first placeholder that is neither built in nor a column."""
    known = {*BUILT_IN, *columns, *mapped}
    for template in templates:
        for name in sorted(template.names - known):
            near = get_close_matches(name, known, n=1)
            raise ConfigError(
                f"{template.place} uses {{{name}}}, which is neither built in nor a column of the input",
                code="unknown_placeholder",
                hint=f"did you mean {{{near[0]}}}?" if near else f"there are {', '.join(sorted(known))}",
            )
