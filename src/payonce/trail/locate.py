"""Which event it is: once a hash does not agree, the rows under it are read one by one and compared with what each says
of itself. Every event holds its own number in its hashed body, and the ledger keeps the start of its hash beside it.

Pure over the rows it is given. It names what it can prove and says where only a block can be named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from payonce.core.events import leaf_hash
from payonce.ledger.merkle import mark_of
from payonce.ledger.trail_port import Filed
from payonce.trail.faults import Fault

# So many events in a row that are off by the same number were pushed along by one insertion or removal before them.
_RUN: Final = 3


@dataclass(frozen=True, slots=True)
class Seen:
    """One row: where it stands, the number its body says, whether body and mark agree (None without a mark), and what
    it is about, in words."""

    seq: int
    own: int | None
    fits: bool | None
    leaf_mark: int
    mark: int | None
    about: str

    @property
    def shift(self) -> int | None:
        """How far it stands behind its own number."""
        return None if self.own is None else self.seq - self.own


def look(rows: Iterable[Filed]) -> list[Seen]:
    """Rows as the comparison needs them."""
    seen = []
    for seq, _, body, mark in rows:
        said, leaf = _parsed(body), mark_of(leaf_hash(body))
        own = said.get("seq")
        fits = None if mark is None else mark == leaf
        seen.append(Seen(seq, own if isinstance(own, int) else None, fits, leaf, mark, words(said)))
    return seen


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) else {}


def words(said: dict[str, Any]) -> str:
    """What an event is about: ``commit of item A-17 in batch refunds``."""
    text = str(said.get("type", "no event at all"))
    if said.get("item") is not None:
        text += f" of item {said['item']}"
    return f"{text} in batch {said['batch']}" if said.get("batch") is not None else text


def locate(seen: Sequence[Seen], *, first: int = 1, size: int | None = None) -> list[Fault]:
    """The faults in some rows, in order of their events. With ``size``, how many events there should be, the rows are all
    there are from ``first`` to the end, and what is missing between or stands behind them is named too."""
    strays, shifts = _shifts(seen)
    faults = _moved(seen, strays, shifts)
    named = {seq for fault in faults for seq in range(fault.seq or 0, (fault.last or fault.seq or 0) + 1)}
    for row in seen:
        if row.fits is False and row.seq not in named and row.shift == shifts.get(row.seq, 0):
            faults.append(Fault("changed", f"event {row.seq} was changed; it says now: {row.about}", row.seq))
    if size is not None:
        faults += _missing(seen, shifts, first, size)
    return sorted(faults, key=lambda fault: fault.seq or 0)


def _shifts(seen: Sequence[Seen]) -> tuple[list[Seen], dict[int, int]]:
    """Rows that fit into no run, and for all others by how much their run was pushed along."""
    strays: list[Seen] = []
    shifts: dict[int, int] = {}
    at, current = 0, 0
    while at < len(seen):
        end = at
        while end < len(seen) and seen[end].shift == seen[at].shift:
            end += 1
        shift = seen[at].shift
        run = shift is not None and (end - at >= _RUN or (end == len(seen) and _pushed(seen, at, shift - current)))
        if shift is not None and (shift == current or run):
            current = shift
            shifts.update((row.seq, shift) for row in seen[at:end])
        else:
            strays += seen[at:end]
        at = end
    return strays, shifts


def _pushed(seen: Sequence[Seen], at: int, by: int) -> bool:
    """Whether the few rows from ``at`` to the end were pushed along: what was put in before them does not fit its mark."""
    return 0 < by <= at and all(row.fits is not True for row in seen[at - by : at])


def _moved(seen: Sequence[Seen], strays: Sequence[Seen], shifts: dict[int, int]) -> list[Fault]:
    """Inserted, removed and reordered events, from the shifts of runs and the rows that fit into none."""
    faults: list[Fault] = []
    inserted: set[int] = set()
    before = 0
    for row in seen:
        shift = shifts.get(row.seq)
        if shift is None or shift == before:
            continue
        if shift > before:
            first = row.seq - (shift - before)
            inserted.update(range(first, row.seq))
            faults.append(Fault("inserted", _inserted(first, row.seq - 1, seen), first, row.seq - 1))
        else:
            first = row.seq - before
            last = first + (before - shift) - 1
            faults.append(Fault("removed", f"{_events(first, last)} removed, those after it moved up", first, last))
        before = shift
    places = {row.seq for row in strays} - inserted
    for row in strays:
        if row.seq in inserted:
            continue
        if row.own in places:
            text = f"event {row.own} stands in the place of event {row.seq}: {row.about}"
            faults.append(Fault("reordered", text, row.seq))
        else:
            text = f"the row in the place of event {row.seq} was never written by the ledger: {row.about}"
            faults.append(Fault("changed", text, row.seq))
    return faults


def _missing(seen: Sequence[Seen], shifts: dict[int, int], first: int, size: int) -> list[Fault]:
    """Numbers without a row, and rows behind the end."""
    faults: list[Fault] = []
    expected = first
    for row in seen:
        if row.seq > expected:
            last = row.seq - 1
            faults.append(Fault("removed", f"{_events(expected, last)} removed", expected, last))
        expected = row.seq + 1
    pushed = shifts.get(seen[-1].seq, 0) if seen else 0
    end = expected - 1 - pushed
    if end < size:
        faults.append(Fault("removed", f"{_events(end + 1, size)} removed from the end", end + 1, size))
    elif end > size:
        text = f"{_events(size + 1, end)} added behind the end of the trail"
        faults.append(Fault("inserted", text, size + 1, end))
    return faults


def _inserted(first: int, last: int, seen: Sequence[Seen]) -> str:
    about = next((row.about for row in seen if row.seq == first), "")
    return f"{_events(first, last)} inserted: {about}; those behind moved down"


def _events(first: int, last: int) -> str:
    """``event 7 was`` or ``events 7 to 9 were``."""
    return f"event {first} was" if first >= last else f"events {first} to {last} were"
