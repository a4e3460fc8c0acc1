"""Bodies of calls: JSON and form, compiled once into literal bytes with slots, so that an item costs only its slots.

Deterministic: keys stay in the order of the batch file, numbers keep their digits, nothing is added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, Protocol
from urllib.parse import quote_plus

import orjson

from payonce.core.errors import ConfigError
from payonce.providers.templates import Context, Names, Template

JSON_TYPE: Final = "application/json"
FORM_TYPE: Final = "application/x-www-form-urlencoded"


class Body(Protocol):
    """What a call carries."""

    @property
    def content_type(self) -> str | None:
        """Its Content-Type; None for no body."""
        ...

    @property
    def templates(self) -> tuple[Template, ...]:
        """All its templates, for checking their placeholders."""
        ...

    def render(self, context: Context) -> bytes:
        """Its exact bytes for an item. Raises ConfigError where a template cannot be filled."""
        ...


class NoBody:
    """Nothing."""

    content_type: str | None = None
    templates: tuple[Template, ...] = ()

    def render(self, context: Context) -> bytes:
        """No bytes."""
        return b""


class JsonBody:
    """A JSON document with templates in its texts."""

    content_type: str | None = JSON_TYPE

    def __init__(self, tree: Any, *, place: str, names: Names) -> None:
        pieces: list[bytes | Template] = []
        for piece in _json_pieces(tree, place, names):
            if isinstance(piece, bytes) and pieces and isinstance(pieces[-1], bytes):
                pieces[-1] += piece
            else:
                pieces.append(piece)
        self._pieces = tuple(pieces)
        self.templates = tuple(piece for piece in pieces if isinstance(piece, Template))

    def render(self, context: Context) -> bytes:
        """Its exact bytes for an item."""
        return b"".join(
            [
                piece if isinstance(piece, bytes) else dump_json(piece.value(context), piece.place)
                for piece in self._pieces
            ]
        )


class FormBody:
    """A form; nested tables become ``a[b]=c``, lists ``a[0]=c``."""

    content_type: str | None = FORM_TYPE

    def __init__(self, table: Mapping[str, Any], *, place: str, names: Names) -> None:
        self._fields = tuple(_form_fields(table, "", place, names))
        self.templates = tuple(template for _, template in self._fields)

    def render(self, context: Context) -> bytes:
        """Its exact bytes for an item."""
        pairs = [f"{quote_plus(name)}={quote_plus(template.text(context))}" for name, template in self._fields]
        return "&".join(pairs).encode("ascii")


def dump_json(value: Any, place: str) -> bytes:
    """A value as compact JSON. Raises ConfigError for what JSON cannot hold exactly."""
    try:
        return orjson.dumps(value, default=_exact)
    except TypeError as error:
        raise ConfigError(
            f"{place}: a value cannot be written as JSON ({error})",
            code="template_unfilled",
            hint="whole numbers beyond 64 bits and undecodable text have to be texts",
        ) from error


def _exact(value: object) -> Any:
    if isinstance(value, Decimal) and value.is_finite():
        return orjson.Fragment(str(value).encode("ascii"))
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _json_pieces(node: Any, place: str, names: Names) -> Iterator[bytes | Template]:
    match node:
        case str():
            template = Template(node, place=place, names=names)
            constant = template.constant
            yield template if constant is None else dump_json(constant, place)
        case Mapping():
            yield from _sequence(node.items(), b"{}", lambda pair: _member(pair, place, names))
        case list():
            yield from _sequence(
                enumerate(node), b"[]", lambda pair: _json_pieces(pair[1], f"{place}[{pair[0]}]", names)
            )
        case float() if not math.isfinite(node):
            raise ConfigError(f"{place} is {node}, which JSON does not have", code="bad_template", hint="use a number")
        case _:
            yield dump_json(node, place)


def _sequence(
    entries: Any, brackets: bytes, pieces: Callable[[Any], Iterator[bytes | Template]]
) -> Iterator[bytes | Template]:
    yield brackets[:1]
    for n, entry in enumerate(entries):
        if n:
            yield b","
        yield from pieces(entry)
    yield brackets[1:]


def _member(pair: tuple[str, Any], place: str, names: Names) -> Iterator[bytes | Template]:
    name, value = pair
    yield dump_json(_plain_name(name, place), place) + b":"
    yield from _json_pieces(value, f"{place}.{name}", names)


def _form_fields(table: Mapping[str, Any], prefix: str, place: str, names: Names) -> Iterator[tuple[str, Template]]:
    for name, value in table.items():
        full = f"{prefix}[{name}]" if prefix else _plain_name(name, place)
        where = f"{place}.{full}"
        match value:
            case Mapping():
                yield from _form_fields(value, full, place, names)
            case list():
                yield from _form_fields({str(n): entry for n, entry in enumerate(value)}, full, place, names)
            case bool():
                yield full, Template("true" if value else "false", place=where, names=names)
            case str() | int():
                yield full, Template(str(value), place=where, names=names)
            case _:
                raise ConfigError(f"{where} is neither text nor a whole number", code="bad_template", hint="quote it")


def _plain_name(name: str, place: str) -> str:
    if "{" in name or "}" in name:
        raise ConfigError(
            f"{place}: the name {name!r} has braces", code="bad_template", hint="placeholders are filled in values only"
        )
    return name
