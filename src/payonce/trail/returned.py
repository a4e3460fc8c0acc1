"""What the calls of a batch's items returned, as it is stored, against what their events say. Pure over the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from payonce.core.events import plain
from payonce.core.keys import digest
from payonce.ledger.rows import OutputRow
from payonce.trail.explain import Story

_CHANGED: Final = "is not one that it was committed with"
_GONE: Final = "is gone, and no event erased it"


def differing(rows: Iterable[OutputRow], story: Story) -> Iterator[tuple[int, str, str]]:
    """Item number, what of it and how it differs, for each output and each kept field set that is not that of the events.

    What is gone was erased by an event, or by somebody. Takes what it has found off the story."""
    outputs, kept = story.outputs, story.kept
    for row in rows:
        if row.output is not None and digest(row.output) != outputs.pop(row.n, None):
            yield row.n, "the output", _CHANGED
        if row.kept is not None:
            said = 0
            if row.n < len(kept):
                said, kept[row.n] = kept[row.n], 0
            if not said or (said != hash(row.kept.encode()) and said != _canonical(row.kept)):
                yield row.n, "what was kept of the answer", _CHANGED
    for n in sorted(outputs.keys() - story.erased):
        yield n, "the output", _GONE
    if any(kept):
        for n, said in enumerate(kept):
            if said and n not in story.erased:
                yield n, "what was kept of the answer", _GONE


def _canonical(text: str) -> int:
    """The hash of a stored text in the form that it has in an event; 0 where it is no JSON."""
    try:
        return hash(orjson.dumps(plain(orjson.loads(text)), option=orjson.OPT_SORT_KEYS))
    except ValueError:
        return 0
