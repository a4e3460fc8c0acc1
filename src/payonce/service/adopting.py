"""Taking executions found elsewhere into a sealed batch: each committed with its evidence, so that the rest can run.

Sends nothing. Everything is compared before anything is written: a log or statement that contradicts the batch is
refused whole. What was started but not proven becomes unknown, never planned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from payonce.audit.model import Seen, Wish
from payonce.audit.sort import sort
from payonce.core.commands import Change, Command, Intend, Landed
from payonce.core.errors import Problem, SealedError
from payonce.core.events import iso
from payonce.core.model import Actor, Finding, Item, Request
from payonce.core.states import ItemEvent, ItemState, Settlement
from payonce.ledger.protocol import Ledger
from payonce.service.adopting_found import Asked, Found, found_of, with_owners
from payonce.service.adopting_log import Logged
from payonce.service.inspecting import find_batch, items
from payonce.service.reconciling_ledger import ADOPTED

_MOST_LISTED: Final = 20


class ContradictionError(SealedError):
    """What was found contradicts the sealed batch; all of it is in ``problems``. Nothing was written."""

    def __init__(self, message: str, *, problems: tuple[Problem, ...]) -> None:
        super().__init__(
            message, code="contradicts_batch", hint="nothing was written; find out which of the two is right"
        )
        self.problems = problems


def adopt(ledger: Ledger, asked: Asked, *, actor: Actor) -> dict[str, Any]:
    """Adopts what the file proves; returns what was done with every item, in the JSON shape.

    Each item is one transaction; a crash half-way leaves whole items, and the same command goes on. Raises StatementError
    for a file that cannot be read, ContradictionError where it and the batch cannot both be right.
    """
    batch = find_batch(ledger, asked.batch)
    known = {item.id: item for item in items(ledger, asked.batch)}
    found = found_of(asked, batch, known)
    wishes = [Wish(item.id, item.target, item.money) for item in known.values()]
    result = sort(wishes, with_owners(found.executions, known))
    problems = _contradictions(found, known, result.kept)
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ContradictionError(f"{found.file}: {problems[0].message}{more}", problems=problems)
    extras: dict[str, list[Seen]] = {}
    for extra in result.extras:
        extras.setdefault(extra.item, []).append(extra.seen)
    done: dict[str, list[str]] = {"adopted": [], "unknown": [], "already": [], "not_written": []}
    for item_id, seen in result.kept.items():
        item = known[item_id]
        commands = _commit(item, seen, extras.get(item_id, ()), found)
        done[_write(ledger, asked.batch, item, commands, actor=actor, to="adopted")].append(item_id)
    for entry in found.started:
        if entry.item in known and entry.item not in result.kept:
            commands = _unproven(known[entry.item], entry, found)
            done[_write(ledger, asked.batch, known[entry.item], commands, actor=actor, to="unknown")].append(entry.item)
    return _document(asked, found, done, known, [(e.item, e.seen) for e in result.extras])


def _contradictions(found: Found, known: Mapping[str, Item], kept: Mapping[str, Seen]) -> tuple[Problem, ...]:
    problems: list[Problem] = []

    def problem(seen_rows: Sequence[str], item: str, code: str, message: str) -> None:
        line = int(seen_rows[0]) if seen_rows and seen_rows[0].isdigit() else None
        problems.append(Problem(found.file, line, None, item, code, message))

    for item_id, seen in kept.items():
        item = known[item_id]
        if item.money is not None and item.money != seen.money:
            text = f"item {item_id} was executed with {seen.money}, the batch has {item.money}"
            problem(seen.rows, item_id, "other_amount", text)
        elif item.state is ItemState.COMMITTED and item.reference != seen.reference:
            text = f"item {item_id} is committed as {item.reference}, the file has {seen.reference}"
            problem(seen.rows, item_id, "other_reference", text)
        elif item.state in (ItemState.REFUSED, ItemState.SKIPPED):
            text = f"item {item_id} is {item.state.value} in the batch, the file says that it was executed"
            problem(seen.rows, item_id, "other_state", text)
    for entry in found.outsiders:
        problem((str(entry.line),), entry.item, "not_in_batch", f"{entry.item} is in the file and no item of the batch")
    for entry, owner in found.taken:
        text = f"{entry.item} has {entry.reference} in the file, and item {owner} is committed with it"
        problem((str(entry.line),), entry.item, "reference_taken", text)
    return tuple(problems)


def _intent(
    item: Item, found: Found, *, rows: Sequence[str], started_us: int | None, data: Mapping[str, Any]
) -> Intend:
    """The record that it may have been sent, by somebody else and without a key of ours: never sent again from it."""
    headers: tuple[tuple[str, str], ...] = (("Evidence", found.sha256), ("Rows", ",".join(rows)))
    if started_us is not None:
        headers = (*headers, ("Started-At", iso(started_us)))
    request = Request(ADOPTED, f"/{found.file}", headers=headers)
    return Intend(item.n, ItemEvent.INTENT, item.generation, item.step, None, request, 0, 0, data=data)


def _evidence(found: Found, rows: Sequence[str]) -> dict[str, Any]:
    return {"by": "adopt", "file": found.file, "sha256": found.sha256, "rows": list(rows)}


def _commit(item: Item, seen: Seen, extras: Sequence[Seen], found: Found) -> list[Command]:
    data = _evidence(found, seen.rows)
    findings = tuple(
        Finding("duplicate", item.id, {"reference": extra.reference, "statement_amount": extra.money.text,
                                       "currency": extra.money.currency, "kept": seen.reference, **_evidence(found, extra.rows)})
        for extra in extras
    )  # fmt: skip
    commit = Change(
        item.n, ItemEvent.COMMIT, data=data, reference=seen.reference or None, billed=seen.money, findings=findings,
        settlement=Settlement.PENDING if seen.pending else None,
    )  # fmt: skip
    if item.state is ItemState.PLANNED:
        return [_intent(item, found, rows=seen.rows, started_us=seen.at_us, data=data), commit]
    return [commit]


def _unproven(item: Item, entry: Logged, found: Found) -> list[Command]:
    rows = (str(entry.line),)
    data = _evidence(found, rows)
    text = "an earlier run started it and has no proof of what became of it"
    unknown = Change(item.n, ItemEvent.UNDECIDED, data=data, code="adopted_unproven", message=text)
    return [_intent(item, found, rows=rows, started_us=entry.at_us, data=data), unknown]


def _write(ledger: Ledger, batch: str, item: Item, commands: Sequence[Command], *, actor: Actor, to: str) -> str:
    if item.state is ItemState.COMMITTED or (to == "unknown" and item.state is not ItemState.PLANNED):
        return "already"
    landed = ledger.operate(batch, item.id, commands, actor=actor, reason="adopted: executed before this ledger had it")
    return to if landed is Landed.LANDED else "not_written"


def _document(
    asked: Asked,
    found: Found,
    done: Mapping[str, list[str]],
    known: Mapping[str, Item],
    extras: Sequence[tuple[str, Seen]],
) -> dict[str, Any]:
    moved = {name for names in done.values() for name in names}
    planned = [item.id for item in known.values() if item.state is ItemState.PLANNED and item.id not in moved]
    return {
        "batch": asked.batch,
        "file": found.file,
        "sha256": found.sha256,
        "items": {**{name: len(ids) for name, ids in done.items()}, "planned": len(planned)},
        "adopted": done["adopted"],
        "unknown": done["unknown"],
        "not_written": done["not_written"],
        "duplicates": [
            {"item": item, "reference": seen.reference, "amount": seen.money.text, "currency": seen.money.currency}
            for item, seen in extras
        ],
        "torn_line": found.torn,
        **found.rows,
    }


def shown(document: Mapping[str, Any], name: str) -> str:
    """The first of some items, for people."""
    ids = document[name]
    more = f" and {len(ids) - _MOST_LISTED} more" if len(ids) > _MOST_LISTED else ""
    return ", ".join(ids[:_MOST_LISTED]) + more
