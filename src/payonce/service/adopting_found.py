"""What a file or a provider proves of a batch that ran elsewhere: executions, what was only started, and the evidence.

Reads only: an old script's log, the provider's report, or the provider itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from payonce.audit.model import Seen
from payonce.core.model import Batch, Item
from payonce.core.money import Money
from payonce.core.states import ItemState
from payonce.reconcile.mapping import read_mapping
from payonce.reconcile.report import rows_json
from payonce.reconcile.statement import Wanted, read_statement
from payonce.service.adopting_log import Log, Logged, proving, read_log, unproven
from payonce.service.auditing import ask, executions_of, rows_of
from payonce.service.running import check_bound


@dataclass(frozen=True, slots=True)
class Asked:
    """What is adopted from which file. ``mapping`` holds an [adopt] or a [statement] table; ``as_statement`` says that
    the file is the provider's report and not a log. A ``.toml`` file is a batch file whose provider is asked. Executions
    before ``since_us`` or from ``until_us`` on are other business."""

    batch: str
    file: Path
    mapping: Mapping[str, Any] | None = None
    as_statement: bool = False
    since_us: int | None = None
    until_us: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What the file proves: executions, what was only started, and where the evidence is."""

    file: str
    sha256: str
    executions: tuple[Seen, ...]
    started: tuple[Logged, ...] = ()
    outsiders: tuple[Logged, ...] = ()
    taken: tuple[tuple[Logged, str], ...] = ()
    torn: int | None = None
    rows: Mapping[str, Any] = field(default_factory=dict)


def found_of(asked: Asked, batch: Batch, known: Mapping[str, Item]) -> Found:
    """What is proven of the batch's items (``known``, by id) inside the window that was asked for.

    Raises StatementError for a file that cannot be read, UsageError where a provider cannot be asked."""
    return _inside(_found(asked, batch, known), asked)


def _found(asked: Asked, batch: Batch, known: Mapping[str, Item]) -> Found:
    operation, sealed = batch.spec.operation, batch.spec.config.get("statement")
    if asked.file.suffix.lower() == ".toml":
        return _listed(asked.file, batch, known)
    if asked.as_statement:
        table = (asked.mapping or {}).get("statement") or sealed
        statement = read_statement(
            [asked.file], Wanted(operation, read_mapping(table) if table else None, option="--from")
        )
        seen = tuple(one for entry in statement.entries for one in executions_of(entry))
        return Found(", ".join(statement.files), statement.sha256, seen, rows=rows_of(statement))
    log = read_log(asked.file, (asked.mapping or {}).get("adopt"))
    outsiders = tuple(entry for entry in log.lines if entry.item not in known)
    executions = _executions(log, known)
    started = tuple(unproven(log, {item for seen in executions for item in seen.owns}))
    rows = rows_json(len(log.lines) + len(log.ignored), len(log.lines), log.ignored)
    return Found(log.file, log.sha256, executions, started, outsiders, _taken(log, known), log.torn, rows)


def _owner(known: Mapping[str, Item]) -> dict[str, str]:
    """The item of each reference that the ledger has committed."""
    return {item.reference: item.id for item in known.values() if item.state is ItemState.COMMITTED and item.reference}


def _taken(log: Log, known: Mapping[str, Item]) -> tuple[tuple[Logged, str], ...]:
    """The lines with a reference that another item is committed with, and that item."""
    owner = _owner(known)
    return tuple(
        (entry, owner[entry.reference])
        for entry in log.lines
        if entry.reference is not None and owner.get(entry.reference, entry.item) != entry.item
    )


def _listed(file: Path, batch: Batch, known: Mapping[str, Item]) -> Found:
    """What the provider's own look-up shows for each item. Raises UsageError where it cannot be asked, SealedError where
    it is another account's."""
    listed = ask(file, list(known.values()))
    check_bound(batch, listed.identity, digest=str(batch.spec.config.get("provider_digest", "")))
    seen = tuple(one for entry in listed.statement.entries for one in executions_of(entry))
    return Found(listed.statement.layout, listed.statement.sha256, seen, rows=rows_of(listed.statement))


def _inside(found: Found, asked: Asked) -> Found:
    """The executions in the window that was asked for: earlier and later ones are other business."""

    def inside(seen: Seen) -> bool:
        if seen.at_us is None:
            return True
        early = asked.since_us is not None and seen.at_us < asked.since_us
        return not early and not (asked.until_us is not None and seen.at_us >= asked.until_us)

    return replace(found, executions=tuple(seen for seen in found.executions if inside(seen)))


def with_owners(executions: Sequence[Seen], known: Mapping[str, Item]) -> tuple[Seen, ...]:
    """An execution that the ledger has committed already is that item's, and never another's on the same target."""
    owner = _owner(known)
    return tuple(
        replace(seen, owns=(owner[seen.reference],)) if seen.reference in owner else seen for seen in executions
    )


def _executions(log: Log, known: Mapping[str, Item]) -> tuple[Seen, ...]:
    """The executions that the log proves, each reference once. An amount that is not stated is the item's own: the script ran on it."""
    seen: dict[str, Seen] = {}
    for place, entry in enumerate(proving(log)):
        if entry.reference is None or entry.reference in seen:
            continue
        item = known.get(entry.item)
        asked = item.money if item is not None else None
        money = entry.money
        if money is None and asked is not None:
            stated = Money(entry.text, asked.currency) if entry.text else None
            stated = (
                Money.of_minor(entry.minor, asked.currency) if stated is None and entry.minor is not None else stated
            )
            money = stated or asked
        if money is None:
            continue
        seen[entry.reference] = Seen(
            place,
            entry.reference,
            money,
            owns=(entry.item,),
            target=entry.item,
            at_us=entry.at_us,
            rows=(str(entry.line),),
        )
    return tuple(seen.values())
