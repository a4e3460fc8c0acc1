"""Events that every item has, as texts with gaps: the canonical JSON of a first call and of its execution.

An event of a known form is written by filling in what differs from item to item, which costs a third of building and
sorting it. The bytes are those that ``Log.emit`` would write for the same facts: a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from payonce.core.states import Settlement


class Form:
    """The canonical text of an event with gaps for ``%``. ``short`` is for the store that writes another text of it."""

    __slots__ = ("short", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.short = ""


# Runs differ in batch, worker, currency and little else; items that were called more often have forms of their own.
@lru_cache(maxsize=512)
def first_call(batch: str, worker: int, currency: str, attempt: int, generation: int, step: int) -> Form:
    """An intent. Gaps: amount, time, item, key, request, number."""
    return _form(
        amount='"%s"',
        at='"%s"',
        attempt=str(attempt),
        batch=_quoted(batch),
        currency=_quoted(currency),
        generation=str(generation),
        item='"%s"',
        key='"%s"',
        request='"%s"',
        seq="%d",
        step=str(step),
        type='"intent"',
        worker=str(worker),
    )


# What an answer may leave behind, in the order in which the evidence names it, and as it is sorted.
ANSWERS: Final = {
    ("start", "end", "status", "response", "request_id"): ("end", "request_id", "response", "start"),
    ("start", "end", "status", "response"): ("end", "response", "start"),
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
    status: int,
    texts: tuple[str, ...],
) -> Form:
    """A commit over the amount asked. Gaps: amount, time, billed, ``texts`` of the answer, item, key, reference, number."""
    data = "".join(f'"{name}":"%s",' for name in texts)
    more = {} if settlement is Settlement.NONE else {"settlement": _quoted(settlement.value)}
    return _form(
        amount='"%s"',
        at='"%s"',
        attempt=str(attempt),
        batch=_quoted(batch),
        billed='"%s"',
        currency=_quoted(currency),
        data=f'{{{data}"status":{status}}}',
        generation=str(generation),
        item='"%s"',
        key='"%s"',
        reference='"%s"',
        seq="%d",
        **more,
        step=str(step),
        type='"commit"',
        worker=str(worker),
    )


def _form(**fields: str) -> Form:
    """Fields in their order, which is that of canonical JSON."""
    assert list(fields) == sorted(fields), "canonical JSON is sorted"
    return Form("{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}")


def _quoted(text: str) -> str:
    """A text as JSON, safe inside a form."""
    return orjson.dumps(text).decode().replace("%", "%%")


def is_safe(texts: Sequence[str]) -> bool:
    """Whether none of some texts needs an escape in JSON, nor is of more than ASCII."""
    return len(orjson.dumps(texts)) == sum(map(len, texts)) + 3 * len(texts) + 1


def escaped(values: Iterable[Any]) -> tuple[Any, ...]:
    """Values of a form with their texts as JSON writes them."""
    return tuple(orjson.dumps(v).decode()[1:-1] if isinstance(v, str) else v for v in values)
