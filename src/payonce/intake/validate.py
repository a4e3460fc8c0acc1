"""Turns blocks of rows into sound items; every fault of every row is reported, in the order of the lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Final

from payonce.intake.amounts import AmountFault, AmountReader, read_currency
from payonce.intake.block import Block, Cells
from payonce.intake.idcolumn import IdColumn
from payonce.intake.report import Report
from payonce.intake.settings import MONEY_OPERATIONS, InputSettings
from payonce.intake.shown import shown

# So many different amounts of one currency are remembered at most.
_REMEMBERED: Final = 100_000


@dataclass(frozen=True, slots=True)
class Sound:
    """Items that are sound as single rows. ``targets`` None: as the ids; no amount: both columns hold None."""

    lines: Sequence[int]
    ids: Sequence[str]
    targets: Sequence[str] | None
    minors: Sequence[int | None]
    currencies: Sequence[str | None]
    fields: Cells | Sequence[Mapping[str, Any]]

    def keep(self, selected: Sequence[bool]) -> Sound:
        """The selected ones only."""
        fields = self.fields
        return Sound(
            list(compress(self.lines, selected)),
            list(compress(self.ids, selected)),
            None if self.targets is None else list(compress(self.targets, selected)),
            list(compress(self.minors, selected)),
            list(compress(self.currencies, selected)),
            fields.keep(selected) if isinstance(fields, Cells) else list(compress(fields, selected)),
        )


class Validator:
    """Checks the rows of one reading. The amounts' evidence is judged by the caller at the end."""

    def __init__(self, settings: InputSettings, report: Report, *, amounts: AmountReader, operation: str) -> None:
        item = settings.item
        self._report = report
        self._amounts = amounts
        self._needs_money = operation in MONEY_OPERATIONS
        self._ids = IdColumn(item.id, report, role="id")
        same = item.target is None or item.target == item.id
        self._targets = None if same or item.target is None else IdColumn(item.target, report, role="target")
        self._amount_column = item.amount or item.amount_minor
        self._currency_column = item.currency
        # columns.py refuses a constant that is no currency.
        self._constant = None if item.currency_value is None else str(read_currency(item.currency_value))
        self._known: dict[str, dict[str, int]] = {}

    def check(self, block: Block) -> tuple[Sound, list[tuple[int, str]]]:
        """The sound items of a block, and line and id of the refused ones whose id is sound."""
        ids, bad_ids = self._ids.check(block.ids, block.lines, typed=block.typed)
        bad = set(bad_ids)
        targets = None
        if self._targets is not None and block.targets is not None:
            targets, bad_targets = self._targets.check(block.targets, block.lines, typed=block.typed)
            bad.update(bad_targets)
        minors, currencies = self._money(block, bad)
        sound = Sound(block.lines, ids, targets, minors, currencies, block.fields)
        if not bad:
            return sound, []
        self._report.refused += len(bad)
        named = set(bad_ids)
        refused = [(block.lines[place], ids[place]) for place in sorted(bad) if place not in named]
        return sound.keep([place not in bad for place in range(len(ids))]), refused

    def finish(self) -> None:
        """What only the whole input shows."""
        self._ids.finish()
        if self._targets is not None:
            self._targets.finish()

    def _money(self, block: Block, bad: set[int]) -> tuple[Sequence[int | None], Sequence[str | None]]:
        count = len(block.lines)
        if block.amounts is None:
            return [None] * count, [None] * count
        codes = self._codes(block, bad)
        if isinstance(codes, str):
            minors = self._minors(block, codes, block.amounts, range(count), bad)
            return minors, [codes] * count if None not in minors else [
                None if minor is None else codes for minor in minors
            ]
        amounts: list[int | None] = [None] * count
        by_code: dict[str, list[int]] = {}
        for place, code in enumerate(codes):
            if code is not None:
                by_code.setdefault(code, []).append(place)
        for code, places in by_code.items():
            read = self._minors(block, code, [block.amounts[place] for place in places], places, bad)
            for place, minor in zip(places, read, strict=True):
                amounts[place] = minor
        # An optional amount that is blank leaves the currency without meaning.
        return amounts, [None if amounts[place] is None else code for place, code in enumerate(codes)]

    def _codes(self, block: Block, bad: set[int]) -> str | Sequence[str | None]:
        """The currency codes, or the one that all rows have; None where there is none that could be used."""
        if self._constant is not None:
            return self._constant
        assert block.currencies is not None, "columns.py asks for a currency"
        values = block.currencies
        if block.typed:
            values = [value if type(value) is str else shown(value) for value in values]
        known = {value: read_currency(value) for value in set(values)}
        first = next(iter(known.values()))
        if len(known) == 1 and isinstance(first, str):
            return first
        codes = {value: code if isinstance(code, str) else None for value, code in known.items()}
        if None in codes.values():
            for place, value in enumerate(values):
                fault = known[value]
                if isinstance(fault, AmountFault):
                    self._refuse_currency(fault, value, place, block, bad)
        return list(map(codes.__getitem__, values))

    def _refuse_currency(self, fault: AmountFault, value: Any, place: int, block: Block, bad: set[int]) -> None:
        amount = None if block.amounts is None else block.amounts[place]
        if not self._needs_money and fault.code == "missing_currency" and _blank(amount):
            return
        bad.add(place)
        self._report.problem(
            fault.code,
            f"the currency {fault.message}",
            line=block.lines[place],
            column=self._currency_column,
            value=shown(value),
        )
        # The row is refused anyway; what is wrong with its amount too need not wait for another try.
        fault_too = None if self._amount_column is None or block.amounts is None else self._amounts.unusable(amount)
        if fault_too is not None and not (_blank(amount) and not self._needs_money):
            self._refuse_amount(fault_too, amount, block.lines[place])

    def _minors(
        self, block: Block, code: str, amounts: Sequence[Any], places: Sequence[int], bad: set[int]
    ) -> Sequence[int | None]:
        """Amounts of one currency; ``places`` says where in the block each stands. Refused and blank ones are None."""
        usual = None if block.typed else self._amounts.column(amounts, code)
        if usual is not None:
            return usual
        known = self._known.setdefault(code, {})
        if len(known) > _REMEMBERED:
            known.clear()
        minors: list[int | None]
        if block.typed:
            # Only text is looked up: 1, 1.0 and True are one key to a dictionary.
            minors = [known.get(amount) if type(amount) is str else None for amount in amounts]
        else:
            minors = list(map(known.get, amounts))
        index = -1
        for _ in range(minors.count(None)):
            index = minors.index(None, index + 1)
            value, place = amounts[index], places[index]
            if not self._needs_money and _blank(value):
                continue
            read = self._amounts.read(value, code, line=block.lines[place])
            if isinstance(read, AmountFault):
                bad.add(place)
                self._refuse_amount(read, value, block.lines[place])
                continue
            minors[index] = read
            if type(value) is str:
                known[value] = read
        return minors

    def _refuse_amount(self, fault: AmountFault, value: Any, line: int) -> None:
        message = f"the amount {fault.message}"
        self._report.problem(fault.code, message, line=line, column=self._amount_column, value=shown(value))


def _blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
