"""A stretch of rows of any input, column by column: what readers hand over and the validator takes.

Working on whole columns keeps the common case in C loops; what is odd in a block is then looked at row by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any


@dataclass(frozen=True, slots=True)
class Cells:
    """The carried columns as text, in the order of their sorted names."""

    names: tuple[str, ...]
    columns: tuple[Sequence[str], ...]

    def keep(self, selected: Sequence[bool]) -> Cells:
        """The selected rows only."""
        return Cells(self.names, tuple(list(compress(column, selected)) for column in self.columns))

    def rows(self, count: int) -> list[dict[str, Any]]:
        """One mapping for each of the ``count`` rows."""
        if not self.columns:
            return [{} for _ in range(count)]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*self.columns, strict=True)]


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows that are whole: ``lines`` where each starts; ``targets`` None: as the ids; ``currencies`` None: one for
    all. Text formats hold text only; ``typed`` ones what the source had (int, Decimal, float, None ...)."""

    lines: Sequence[int]
    ids: Sequence[Any]
    targets: Sequence[Any] | None
    amounts: Sequence[Any] | None
    currencies: Sequence[Any] | None
    fields: Cells | Sequence[Mapping[str, Any]]
    typed: bool = False

    def keep(self, selected: Sequence[bool]) -> Block:
        """The selected rows only."""
        fields = self.fields
        return Block(
            list(compress(self.lines, selected)),
            list(compress(self.ids, selected)),
            None if self.targets is None else list(compress(self.targets, selected)),
            None if self.amounts is None else list(compress(self.amounts, selected)),
            None if self.currencies is None else list(compress(self.currencies, selected)),
            fields.keep(selected) if isinstance(fields, Cells) else list(compress(fields, selected)),
            self.typed,
        )
