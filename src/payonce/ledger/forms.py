"""Events that every item has, as texts with gaps: the canonical JSON of a first call and of its execution.

An event of a known form is written by filling in what differs from item to item, which costs a third of building and
sorting it. The bytes are those that ``Log.emit`` would write for the same facts: a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from payonce.core.states import Settlement

_GAP: Final = "\0"  # canonical JSON holds none
_TEXT: Final = f'"{_GAP}"'


class Form:
    """The canonical text of an event with gaps. ``fill`` puts values into them; ``short`` is for the store that writes
    another text of it, with gaps for ``%``."""

    __slots__ = ("_pieces", "fill", "short")

    def __init__(self, text: str) -> None:
        self._pieces = text.split(_GAP)
        make = _FILLS.get(len(self._pieces) - 1)
        self.fill: Callable[..., str] = _any(*self._pieces) if make is None else make(*self._pieces)
        self.short = ""

    @property
    def text(self) -> str:
        """The text with gaps for ``%``."""
        return _percent(self._pieces)


def _six(a: str, b: str, c: str, d: str, e: str, f: str, g: str) -> Callable[..., str]:
    # A third of the price of ``%``, which reads a text letter by letter.
    return lambda q, r, s, t, u, v: f"{a}{q}{b}{r}{c}{s}{d}{t}{e}{u}{f}{v}{g}"


def _ten(a: str, b: str, c: str, d: str, e: str, f: str, *more: str) -> Callable[..., str]:
    g, h, i, j, k = more
    return lambda q, r, s, t, u, v, w, x, y, z: f"{a}{q}{b}{r}{c}{s}{d}{t}{e}{u}{f}{v}{g}{w}{h}{x}{i}{y}{j}{z}{k}"


def _eleven(a: str, b: str, c: str, d: str, e: str, f: str, *more: str) -> Callable[..., str]:
    g, h, i, j, k, m = more
    return lambda q, r, s, t, u, v, w, x, y, z, n: (
        f"{a}{q}{b}{r}{c}{s}{d}{t}{e}{u}{f}{v}{g}{w}{h}{x}{i}{y}{j}{z}{k}{n}{m}"
    )


def _any(*pieces: str) -> Callable[..., str]:
    # What is not written for thousands of items in a row.
    text = _percent(pieces)
    return lambda *values: text % values


def _percent(pieces: Sequence[str]) -> str:
    return "%s".join(piece.replace("%", "%%") for piece in pieces)


_FILLS: Final[Mapping[int, Callable[..., Callable[..., str]]]] = {6: _six, 10: _ten, 11: _eleven}


# Runs differ in batch, worker, currency and little else; items that were called more often have forms of their own.
@lru_cache(maxsize=512)
def first_call(
    batch: str, worker: int, currency: str, attempt: int, generation: int, step: int, *, keyed: bool
) -> Form:
    """An intent. Gaps: amount, time, item, key where there is one, request, number."""
    return _form(
        amount=_TEXT,
        at=_TEXT,
        attempt=str(attempt),
        batch=_quoted(batch),
        currency=_quoted(currency),
        generation=str(generation),
        item=_TEXT,
        **_key(keyed),
        request=_TEXT,
        seq=_GAP,
        step=str(step),
        type='"intent"',
        worker=str(worker),
    )


# What an answer may leave behind, in the order in which the evidence names it, and as it is sorted.
ANSWERS: Final = {
    ("start", "end", "status", "response", "request_id"): ("end", "request_id", "response", "start"),
    ("start", "end", "status", "response"): ("end", "response", "start"),
    ("start", "end"): ("end", "start"),  # of a Python callable
}


@lru_cache(maxsize=512)
def execution(
    batch: str,
    worker: int,
    currency: str,
    attempt: int,
    generation: int,
    step: int,
    settlement: Settlement,
    status: int | None,
    texts: tuple[str, ...],
    *,
    keyed: bool,
) -> Form:
    """A commit over the amount asked. Gaps: amount, time, billed, ``texts`` of the answer, item, key where there is one,
    reference, number."""
    said = [f'"{name}":{_TEXT}' for name in texts]
    data = ",".join(said if status is None else [*said, f'"status":{status}'])
    more = {} if settlement is Settlement.NONE else {"settlement": _quoted(settlement.value)}
    return _form(
        amount=_TEXT,
        at=_TEXT,
        attempt=str(attempt),
        batch=_quoted(batch),
        billed=_TEXT,
        currency=_quoted(currency),
        data=f"{{{data}}}",
        generation=str(generation),
        item=_TEXT,
        **_key(keyed),
        reference=_TEXT,
        seq=_GAP,
        **more,
        step=str(step),
        type='"commit"',
        worker=str(worker),
    )


def _key(keyed: bool) -> dict[str, str]:
    return {"key": _TEXT} if keyed else {}


def _form(**fields: str) -> Form:
    """Fields in their order, which is that of canonical JSON."""
    assert list(fields) == sorted(fields), "canonical JSON is sorted"
    return Form("{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}")


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()


def is_safe(texts: Sequence[str]) -> bool:
    """Whether none of some texts needs an escape in JSON, nor is of more than ASCII."""
    whole = "".join(texts)
    return len(orjson.dumps(whole)) == len(whole) + 2


def escaped(values: Iterable[Any]) -> tuple[Any, ...]:
    """Values of a form with their texts as JSON writes them."""
    return tuple(orjson.dumps(v).decode()[1:-1] if isinstance(v, str) else v for v in values)
