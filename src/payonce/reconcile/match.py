"""Compares a ledger with a statement, entry by entry, to the minor unit. Pure: no clock, no file, no store.

Every item and every entry ends in exactly one class, and for each currency the ledger's total plus the differences of
the discrepancies is the statement's total: ``check`` holds for whatever goes in, and a result for which it does not is
never returned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from payonce.core.states import ItemState
from payonce.reconcile.compare import Verdict, absent, compare, extra
from payonce.reconcile.model import Balance, Coverage, Discrepancy, Entry, Kind, LedgerLine, Proven, Reconciliation
from payonce.reconcile.pairing import Pairs, near_misses, pair, suggestions


def reconcile(
    lines: Sequence[LedgerLine],
    entries: Sequence[Entry],
    coverage: Coverage,
    *,
    elsewhere: Collection[int] = (),
) -> Reconciliation:
    """Compares all items of a batch with all entries of a statement.

    ``elsewhere`` are the places of entries that another batch of the ledger accounts for: they are paired with nothing,
    left out, and listed. Never raises for what the two sides contain.
    """
    pairs = pair(lines, entries, coverage, apart=elsewhere)
    account = _Account(coverage)
    for place in range(len(lines)):
        account.line(pairs, place)
    hints = suggestions(pairs)
    for number, entry in enumerate(entries):
        if number not in pairs.line_of and number not in pairs.legs:
            account.leftover(entry, hints.get(number), known=number in elsewhere)
    near = {lines[place].item: text for place, text in near_misses(pairs).items()}
    return replace(account.result(), near_misses=near)


class _Account:
    """Adds verdicts up. Both totals are summed from the verdicts' sides, the explanation from the findings alone."""

    def __init__(self, coverage: Coverage) -> None:
        self._coverage = coverage
        self._counts: Counter[Kind] = Counter()
        self._ledger: Counter[str] = Counter()
        self._statement: Counter[str] = Counter()
        self._outside: Counter[str] = Counter()
        self._findings: list[Discrepancy] = []
        self._uncovered: list[Discrepancy] = []
        self._proven: list[Proven] = []
        self._undecided: list[str] = []
        self._elsewhere: list[Entry] = []
        self._paired: dict[str, int] = {}

    def line(self, pairs: Pairs, place: int) -> None:
        """One item, with its entry or without, and what else came under its name."""
        line = pairs.lines[place]
        number = pairs.entry_of.get(place)
        if number is None:
            self._take(absent(line, self._coverage), line)
        else:
            self._paired[line.item] = number
            self._take(compare(line, pairs.entries[number], self._coverage), line)
            self._credits(pairs.entries[number], line.item)
        for other in pairs.extras.get(place, ()):
            self._take(extra(line, pairs.entries[other]), line)

    def leftover(self, entry: Entry, hint: str | None, *, known: bool) -> None:
        """An entry that is no item's."""
        if known:
            self._elsewhere.append(entry)
            return
        if not entry.legs and not entry.returned:
            return  # pending or failed, and nobody's: nothing moved
        kind = Kind.NOT_COVERED if entry.outside else Kind.MISSING_IN_LEDGER
        note = "the ledger has no item for it" if entry.legs else "money came back that the ledger has no item for"
        found = Discrepancy(
            kind, None, entry.reference, entry.currency, statement=entry.net, rows=entry.rows, note=note,
            count=max(len(entry.legs), 1), target=entry.target, suggestion=hint, at_us=entry.at_us,
            attached=entry.attached,
        )  # fmt: skip
        self._take(Verdict(found), None)
        self._credits(entry, None)

    def _credits(self, entry: Entry, item: str | None) -> None:
        """Wrong credits move no money of the batch: both sides are zero, the two credits stand beside them."""
        for expected, found, row in entry.credits:
            self._counts[Kind.CREDIT_MISMATCH] += 1
            note = f"the contributor's credit is {found}, official price times multiplier is {expected}"
            self._findings.append(
                Discrepancy(Kind.CREDIT_MISMATCH, item, entry.reference, entry.currency, rows=(row,), note=note,
                            expected=expected, found=found, target=entry.target, at_us=entry.at_us)
            )  # fmt: skip

    def _take(self, verdict: Verdict, line: LedgerLine | None) -> None:
        found = verdict.discrepancy
        if found is not None:
            self._counts[found.kind] += 1
            other = found.statement_currency or found.currency
            if found.kind is Kind.NOT_COVERED:
                self._uncovered.append(found)
                self._outside[found.currency] += found.ledger
            else:
                self._ledger[found.currency] += found.ledger
                self._statement[other] += found.statement
                if found.kind.is_finding:
                    self._findings.append(found)
        for duplicate in verdict.duplicates:
            self._counts[Kind.DUPLICATE] += 1
            self._statement[duplicate.currency] += duplicate.statement
            self._findings.append(duplicate)
        if verdict.proven is not None:
            self._proven.append(verdict.proven)
        if line is not None and verdict.undecided:
            self._undecided.append(line.item)

    def result(self) -> Reconciliation:
        """The whole, balanced."""
        explained: Counter[str] = Counter()
        for found in self._findings:
            explained[found.currency] -= found.ledger
            explained[found.statement_currency or found.currency] += found.statement
        currencies = sorted({*self._ledger, *self._statement, *self._outside})
        balance = {
            currency: Balance(
                self._ledger[currency], self._statement[currency], explained[currency], self._outside[currency]
            )
            for currency in currencies
        }
        for currency, sums in balance.items():
            assert sums.difference == sums.explained, f"the {currency} account does not balance"
        return Reconciliation(
            counts={kind: self._counts[kind] for kind in Kind},
            balance=balance,
            discrepancies=tuple(self._findings),
            uncovered=tuple(self._uncovered),
            proven=tuple(self._proven),
            undecided=tuple(self._undecided),
            elsewhere=tuple(self._elsewhere),
            pairs=self._paired,
        )


def with_clean(result: Reconciliation, clean: dict[str, tuple[int, int]]) -> Reconciliation:
    """Adds pairs that agree in everything, matched beforehand: their number and minor units by currency."""
    counts = dict(result.counts)
    balance = dict(result.balance)
    for currency, (number, minor) in clean.items():
        counts[Kind.MATCHED] = counts.get(Kind.MATCHED, 0) + number
        sums = balance.get(currency, Balance())
        balance[currency] = replace(sums, ledger=sums.ledger + minor, statement=sums.statement + minor)
    return replace(result, counts=counts, balance=dict(sorted(balance.items())))


def committed_minor(lines: Sequence[LedgerLine]) -> dict[str, int]:
    """What the committed items of some lines come to by currency, less what came back."""
    totals: Counter[str] = Counter()
    for line in lines:
        if line.state is ItemState.COMMITTED and line.money is not None and not line.came_back:
            totals[line.money.currency] += line.money.minor
    return dict(totals)
