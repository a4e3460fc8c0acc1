"""The verdict on one item: with its statement entry, or with none. Pure.

A verdict names both sides' amounts, so that whoever adds verdicts up gets two totals whose difference is explained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from payonce.core.money import Money
from payonce.core.states import ItemState
from payonce.reconcile.model import Coverage, Discrepancy, Entry, Kind, LedgerLine, Proof, Proven

_OPEN = (ItemState.UNKNOWN, ItemState.PENDING)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of one item: its class with both sides (None: nothing to compare), further executions, what
    is proven, and whether an open item stays undecided."""

    discrepancy: Discrepancy | None = None
    duplicates: tuple[Discrepancy, ...] = ()
    proven: Proven | None = None
    undecided: bool = False


def absent(line: LedgerLine, coverage: Coverage) -> Verdict:
    """No entry belongs to the item."""
    covered = coverage.proves_absence(line.earliest_us, line.latest_us)
    if line.state in _OPEN:
        if covered and line.state is ItemState.UNKNOWN:
            return Verdict(proven=Proven(line, Proof.NOT_EXECUTED))
        return Verdict(undecided=True)
    if not line.committed or line.came_back:
        return Verdict()  # never went, or went and came back: nothing is left that a statement would have to show
    if covered:
        note = "the ledger has it as executed, the statement does not show it"
        return Verdict(_found(line, Kind.MISSING_AT_PROVIDER, note=note))
    return Verdict(_found(line, Kind.NOT_COVERED, note="outside what the statement covers"))


def extra(line: LedgerLine, entry: Entry) -> Verdict:
    """One more entry that names the item, which has another one already."""
    if not entry.legs and not entry.returned:
        return Verdict()
    kind = Kind.NOT_COVERED if entry.outside else Kind.DUPLICATE
    note = "executed once more for the same item" if entry.net > 0 else "executed once more, and given back"
    if entry.net == 0:
        return Verdict()
    found = _about(line, entry, kind, note=note, ledger=0, statement=entry.net)
    return Verdict(replace(found, currency=entry.currency, statement_currency=None, count=max(len(entry.legs), 1)))


def compare(line: LedgerLine, entry: Entry, coverage: Coverage) -> Verdict:
    """The item and the entry that belongs to it."""
    if not entry.legs and not entry.returned:
        return _without_execution(line, entry)
    if entry.outside:
        minor = line.money.minor if line.committed and line.money and not line.came_back else 0
        found = _about(line, entry, Kind.NOT_COVERED, note="outside the period", ledger=minor, statement=0)
        # It does not count in this period's account, but it is evidence all the same.
        return Verdict(found, proven=_compare(line, entry, coverage).proven)
    return _compare(line, entry, coverage)


def _compare(line: LedgerLine, entry: Entry, coverage: Coverage) -> Verdict:
    if line.money is not None and line.money.currency != entry.currency:
        return _other_currency(line, entry)
    if line.committed:
        return _committed(line, entry, coverage)
    return _not_committed(line, entry)


def _without_execution(line: LedgerLine, entry: Entry) -> Verdict:
    """Only rows that are no execution: still pending at the provider, or failed for good."""
    if entry.pending:
        if line.committed and line.money is not None and not line.came_back:
            note = "accepted by the provider, not final yet"
            return Verdict(_about(line, entry, Kind.NOT_COVERED, note=note, ledger=line.money.minor, statement=0))
        return Verdict(undecided=line.state in _OPEN)
    if line.committed and line.money is not None and not line.came_back:
        note = "the ledger has it as executed, the provider as failed"
        found = _about(line, entry, Kind.STATUS_MISMATCH, note=note, ledger=line.money.minor, statement=0)
        return Verdict(found, proven=Proven(line, Proof.RETURNED, entry))
    if line.state is ItemState.UNKNOWN:
        return Verdict(proven=Proven(line, Proof.FAILED, entry))
    return Verdict(undecided=line.state is ItemState.PENDING)


def _other_currency(line: LedgerLine, entry: Entry) -> Verdict:
    assert line.money is not None
    minor = line.money.minor if line.committed and not line.came_back else 0
    note = f"asked and billed in {line.money.currency}, the statement has {entry.currency}"
    found = _about(line, entry, Kind.CURRENCY_MISMATCH, note=note, ledger=minor, statement=entry.net)
    return Verdict(replace(found, statement_currency=entry.currency), undecided=line.state in _OPEN)


def _committed(line: LedgerLine, entry: Entry, coverage: Coverage) -> Verdict:
    billed = line.money.minor if line.money is not None else entry.executed
    if line.came_back:
        return _came_back(line, entry, coverage, billed)
    if entry.net == billed and entry.legs:
        return Verdict(_about(line, entry, Kind.MATCHED, ledger=billed, statement=billed))
    if not entry.legs:
        # The execution itself lies outside this statement; only its coming back is new.
        note = "came back; the execution itself is in another statement"
        found = _about(line, entry, Kind.STATUS_MISMATCH, note=note, ledger=0, statement=entry.net)
        return Verdict(found, proven=_returned(line, entry, billed))
    if entry.returned == 0:
        return _legs(line, entry, billed)
    if entry.net > billed:
        first = _about(line, entry, Kind.MATCHED, ledger=billed, statement=billed)
        note = "executed more than once, and not all of it came back"
        more = _about(line, entry, Kind.DUPLICATE, note=note, ledger=0, statement=entry.net - billed)
        return Verdict(first, duplicates=(more,))
    note = "executed, then came back" if entry.net == 0 else "executed, then came back in part"
    found = _about(line, entry, Kind.STATUS_MISMATCH, note=note, ledger=billed, statement=entry.net)
    return Verdict(found, proven=_returned(line, entry, billed))


def _came_back(line: LedgerLine, entry: Entry, coverage: Coverage, billed: int) -> Verdict:
    """The ledger knows already that the money came back."""
    if entry.returned:
        # Each statement shows the execution, its return, or both; whichever it shows, the ledger has it too.
        known = (entry.executed if entry.executed in (0, billed) else billed) - billed
        kind = Kind.MATCHED if known == entry.net else Kind.STATUS_MISMATCH
        note = "" if kind is Kind.MATCHED else "came back, but not as much as the ledger has"
        return Verdict(_about(line, entry, kind, note=note, ledger=known, statement=entry.net))
    if coverage.to_us is not None and coverage.to_us <= line.settled_us:
        if entry.net == billed:
            return Verdict(_about(line, entry, Kind.MATCHED, ledger=billed, statement=billed))
        return _legs(line, entry, billed)
    note = "the ledger has it as returned, the statement does not show that it came back"
    return Verdict(_about(line, entry, Kind.STATUS_MISMATCH, note=note, ledger=0, statement=entry.net))


def _legs(line: LedgerLine, entry: Entry, billed: int) -> Verdict:
    """Executions that do not come to the billed amount: once too often, or a wrong amount."""
    if len(entry.legs) > 1 and billed in entry.legs:
        kept = entry.legs.index(billed)
        first = _about(line, entry, Kind.MATCHED, ledger=billed, statement=billed)
        extras = [
            _about(line, entry, Kind.DUPLICATE, note="executed once more under the same reference", statement=minor)
            for place, minor in enumerate(entry.legs)
            if place != kept
        ]
        return Verdict(first, duplicates=tuple(extras))
    note = "billed another amount than the ledger has"
    return Verdict(_about(line, entry, Kind.AMOUNT_MISMATCH, note=note, ledger=billed, statement=entry.net))


def _not_committed(line: LedgerLine, entry: Entry) -> Verdict:
    """The statement shows money for an item that the ledger does not have as executed."""
    open_item = line.state in _OPEN
    asked = line.asked.minor if line.asked is not None else entry.executed
    duplicates: tuple[Discrepancy, ...] = ()
    amount = entry.executed
    if len(entry.legs) > 1 and entry.executed != asked and asked in entry.legs and not entry.returned:
        amount = asked
        note = "executed once more under the same reference"
        minors = list(entry.legs)
        minors.remove(asked)
        duplicates = tuple(_about(line, entry, Kind.DUPLICATE, note=note, statement=minor) for minor in minors)
    kind = Kind.STATUS_MISMATCH if amount == asked or not entry.legs else Kind.AMOUNT_MISMATCH
    found = _about(line, entry, kind, note=_showed(line), statement=amount - entry.returned)
    proven = None
    if open_item and entry.legs:
        proven = Proven(line, Proof.EXECUTED, entry, Money.of_minor(amount, entry.currency))
    elif line.state is ItemState.PLANNED and entry.legs:
        proven = Proven(line, Proof.ELSEWHERE, entry)
    return Verdict(found, duplicates, proven, undecided=open_item and proven is None)


def _showed(line: LedgerLine) -> str:
    if line.state in _OPEN:
        return f"{line.state.value} in the ledger; the statement proves that it was executed"
    if line.state is ItemState.PLANNED:
        return "planned in the ledger; the statement shows that it was executed already: do not send it"
    return f"{line.state.value} in the ledger, executed according to the statement"


def _returned(line: LedgerLine, entry: Entry, billed: int) -> Proven | None:
    """A return is a settlement only where all of the money came back; a part stays a finding for a person."""
    whole = entry.returned >= billed
    return Proven(line, Proof.RETURNED, entry) if whole else None


def _found(line: LedgerLine, kind: Kind, *, note: str) -> Discrepancy:
    # A call whose price nobody told the ledger has no currency: it is still a finding, of no known amount.
    currency, ledger = (line.money.currency, line.money.minor) if line.money else ("", 0)
    return Discrepancy(
        kind, line.item, line.reference, currency, ledger=ledger, note=note, state=line.state.value,
        target=line.target, at_us=line.latest_us,
    )  # fmt: skip


def _about(
    line: LedgerLine, entry: Entry, kind: Kind, *, statement: int, ledger: int = 0, note: str = ""
) -> Discrepancy:
    facts: dict[str, Any] = {"rows": entry.rows, "attached": entry.attached, "at_us": entry.at_us}
    if line.reference and entry.reference and line.reference != entry.reference:
        note = f"{note}; " if note else ""
        note += f"the ledger has reference {line.reference}"
    currency = line.money.currency if line.money is not None else entry.currency
    return Discrepancy(
        kind, line.item, entry.reference or line.reference, currency, ledger=ledger, statement=statement, note=note,
        state=line.state.value, target=line.target, **facts,
    )  # fmt: skip
