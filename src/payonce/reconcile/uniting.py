"""Rows of several files of one report: what stands in two of them is one row exported twice, or two equal rows.

A row with the provider's own reference is the same row wherever it stands. Of equal rows without one only the files can tell:
they are exports of the same time if they show the same there, and of different things if each shows what the other has
not. Where neither is proven, the files are refused until somebody says which it is; whatever was taken for granted is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from payonce.core.events import iso
from payonce.core.wording import some
from payonce.reconcile.coverage import declared_span
from payonce.reconcile.errors import refuse
from payonce.reconcile.row import Row, Rows, Told

EqualRows = Literal["once", "all"]
Texts = Counter[tuple[str, ...]]


@dataclass(slots=True)
class United:
    """Rows with the names that reports show for them, in the files' order; ``repeated`` are names of rows that another
    file has too, with that file. ``net`` is what all rows come to by currency, whatever they are. ``assumed`` says what was
    made of equal rows, in words."""

    rows: list[tuple[str, Row]] = field(default_factory=list)
    repeated: list[tuple[str, str]] = field(default_factory=list)
    net: Counter[str] = field(default_factory=Counter)
    assumed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A file before, as the present one sees it: whether equal rows without a reference are one."""

    file: str
    texts: Texts
    once: bool


def unite(files: Sequence[Rows], *, equal_rows: EqualRows | None = None) -> United:
    """The rows of some files of one report; a row exported twice counts once, as often as the file with most of it has it.

    ``equal_rows`` is what somebody declared. Raises StatementError ``unclear_overlap``.
    """
    found = United()
    before: list[tuple[Rows, Texts, Texts]] = []
    for file in files:
        once = [_shared(other, file, equal_rows, found.assumed) for other, _, _ in before]
        used, told = Texts(), Texts()
        earlier = [_Earlier(o.file, texts, one) for (o, texts, _), one in zip(before, once, strict=True)]
        for row in file.used:
            name = f"{file.file}:{row.line}" if len(files) > 1 else str(row.line)
            twin = _twin(row.identity, row.reference, used, earlier)
            if twin is None:
                found.rows.append((name, row))
            else:
                found.repeated.append((name, twin))
        earlier = [_Earlier(o.file, texts, one) for (o, _, texts), one in zip(before, once, strict=True)]
        for fact in file.told:
            if _twin(fact.text, fact.reference, told, earlier) is None:
                found.net[fact.currency] += fact.minor
        before.append((file, used, told))
    return found


def _twin(text: tuple[str, ...], reference: str, own: Texts, earlier: Iterable[_Earlier]) -> str | None:
    """The earlier file that has this very row too; None where it is to be counted."""
    own[text] += 1
    return next((e.file for e in earlier if (reference or e.once) and e.texts[text] >= own[text]), None)


def _shared(one: Rows, other: Rows, declared: EqualRows | None, assumed: list[str]) -> bool:
    """Whether equal rows without a reference of two files are one row exported twice; what decides it is said."""
    equal = sum((_bare(one.told) & _bare(other.told)).values())
    if not equal:
        return False
    where = f"{some(equal, 'equal row')} without a reference {'is' if equal == 1 else 'are'} in {one.file} and in {other.file}"
    if declared is not None:
        assumed.append(f"{where}: counted {_words(declared == 'once')}, as [statement] equal_rows says")
        return declared == "once"
    once, why = _evidence(one, other)
    if once is None:
        refuse(
            f"{where}, and {why}: it cannot be told whether {'it was' if equal == 1 else 'they were'} exported twice",
            code="unclear_overlap",
            hint='[statement] equal_rows = "once" if both files show the same transactions, "all" if each shows its own',
        )
    assumed.append(f"{where}: counted {_words(once)}, since {why}")
    return once


def _words(once: bool) -> str:
    return "once" if once else "in both"


def _bare(told: Iterable[Told]) -> Texts:
    return Counter(fact.text for fact in told if not fact.reference)


def _named(told: Iterable[Told]) -> Texts:
    return Counter(fact.text for fact in told if fact.reference)


def _evidence(one: Rows, other: Rows) -> tuple[bool | None, str]:
    """Whether two files are exports of the same, and why; None where they do not tell."""
    if _named(one.told) & _named(other.told):
        return True, "rows with a reference are in both files"
    window = _window(one, other)
    if window is None:
        if _named(one.told) and _named(other.told):
            return False, "no row with a reference is in both files"
        return None, "the files have no times that show which time they are of"
    start, end, whole = window
    if start >= end:
        return False, "the files are of different times"
    inside = [list(_inside(rows, start, end, whole)) for rows in (one, other)]
    if any(_named(told) for told in inside):
        return False, "a row with a reference of the time that both cover is in one of them only"
    mine, theirs = (_bare(told) for told in inside)
    if mine and mine == theirs:
        return True, f"the files say the same from {iso(start)} to {iso(end)}"
    if mine - theirs and theirs - mine:
        return False, f"each shows rows from {iso(start)} to {iso(end)} that the other has not"
    return None, f"what they show from {iso(start)} to {iso(end)} proves neither"


def _window(one: Rows, other: Rows) -> tuple[int, int, tuple[bool, bool]] | None:
    """The time that both files cover, and whether its start and its end are certain: a period that a file declares is, one
    told by its rows may end in the middle of a day or a second."""
    spans = [(declared_span(rows), rows.moments) for rows in (one, other)]
    bounds = [(*(declared or moments), declared is not None) for declared, moments in spans if declared or moments]  # type: ignore[misc]
    if len(bounds) < 2:
        return None
    start, begins = max((first, sure) for first, _, sure in bounds)
    end, ends = min((last, sure) for _, last, sure in bounds)
    return start, end, (begins, ends)


def _inside(rows: Rows, start: int, end: int, whole: tuple[bool, bool]) -> Iterator[Told]:
    """The rows for certain in that time: those of an uncertain first and last day, or second, may be in one file only."""
    for fact in rows.told:
        if fact.moment is None:
            continue
        begins = fact.moment.at_us >= start if whole[0] else fact.moment.at_us > start
        ends = fact.moment.end_us <= end if whole[1] else fact.moment.end_us < end
        if begins and ends:
            yield fact
