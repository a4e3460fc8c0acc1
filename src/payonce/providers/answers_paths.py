"""JMESPath over answers in which numbers are exact: no amount passes through a float.

Besides JMESPath's own functions an expression may use ``http_status()``, ``header('Name')`` and ``body_text()``, which
tell what the body itself does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import jmespath
from jmespath import exceptions, functions

from payonce.providers.settings_values import bad_setting
from payonce.providers.transport import Answer


class PathError(Exception):
    """An expression that could not be evaluated on this answer."""


class _Functions(functions.Functions):
    """JMESPath's functions, for which Decimal is a number, and ours."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self._answer = answer

    def _get_allowed_pytypes(self, types: Any) -> Any:
        allowed, subtypes = super()._get_allowed_pytypes(types)  # type: ignore[misc]
        return (
            [*allowed, "Decimal"] if "float" in allowed else allowed,
            [(*names, "Decimal") if "float" in names else names for names in subtypes],
        )

    @functions.signature({"types": []})
    def _func_to_number(self, value: Any) -> Any:
        """JMESPath's own makes floats of texts, and cuts the fraction off a Decimal."""
        if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
            return None
        try:
            return int(value) if isinstance(value, str) and value.lstrip("-").isdecimal() else Decimal(value)
        except InvalidOperation:
            return None

    @functions.signature({"types": []})
    def _func_type(self, value: Any) -> Any:
        return "number" if isinstance(value, Decimal) else super()._func_type(value)  # type: ignore[misc]

    @functions.signature()
    def _func_http_status(self) -> int:
        return self._answer.status

    @functions.signature({"types": ["string"]})
    def _func_header(self, name: str) -> str | None:
        return self._answer.header(name)

    @functions.signature()
    def _func_body_text(self) -> str:
        return self._answer.body.decode("utf-8", "replace")


_NO_ANSWER: Final = Answer(0, (), b"")


class Path:
    """One expression, checked when it is made. ``place`` is how errors name it."""

    __slots__ = ("_compiled", "_fields", "_own", "place")

    def __init__(self, expression: str, *, place: str) -> None:
        self.place = place
        try:
            self._compiled = jmespath.compile(expression)
        except exceptions.JMESPathError as error:
            reason = str(error).splitlines()[0]
            raise bad_setting(
                f"{place} is not a JMESPath expression: {reason}", hint="see https://jmespath.org"
            ) from None
        tree: Any = self._compiled.parsed
        called = {node["value"] for node in _nodes(tree) if node["type"] == "function_expression"}
        unknown = called - set(_Functions.FUNCTION_TABLE)
        if unknown:
            raise bad_setting(
                f"{place} uses an unknown function {sorted(unknown)[0]}()",
                hint=f"there are {', '.join(sorted(_Functions.FUNCTION_TABLE))}",
            )
        for node in _nodes(tree):
            if node["type"] == "literal":
                node["value"] = _exact(node["value"])
        self._own = bool(called)
        self._fields = _plain_fields(tree)

    def find(self, value: Any, answer: Answer = _NO_ANSWER) -> Any:
        """What the expression gives on a parsed body (or a part of one); None where it leads nowhere.

        Raises PathError where a function does not fit its argument.
        """
        if self._fields is not None:
            for name in self._fields:
                value = value.get(name) if isinstance(value, dict) else None
            return value
        options = jmespath.Options(custom_functions=_Functions(answer)) if self._own else None
        try:
            return self._compiled.search(value, options=options)
        except (exceptions.JMESPathError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise PathError(f"{self.place}: {error}") from error


def optional(expression: str | None, *, place: str) -> Path | None:
    """The expression, where there is one."""
    return None if expression is None else Path(expression, place=place)


def is_true(value: Any) -> bool:
    """JMESPath's idea of truth: null, false and empty texts, lists and objects are false, every number is true."""
    return value is not None and value is not False and value not in ("", [], {})


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in node.get("children", ()):
        if isinstance(child, dict) and "type" in child:
            yield from _nodes(child)


def _plain_fields(node: Any) -> tuple[str, ...] | None:
    """The names of an expression that is nothing but ``a.b.c``: most are, and need no interpreter."""
    if node["type"] == "field":
        return (node["value"],)
    if node["type"] == "subexpression":
        parts = [_plain_fields(child) for child in node["children"]]
        if all(part is not None for part in parts):
            return tuple(name for part in parts if part is not None for name in part)
    return None


def _exact(value: Any) -> Any:
    """A literal with Decimals instead of floats, so that it compares with what answers hold."""
    match value:
        case float():
            return Decimal(repr(value))
        case list():
            return [_exact(entry) for entry in value]
        case dict():
            return {name: _exact(entry) for name, entry in value.items()}
        case _:
            return value
