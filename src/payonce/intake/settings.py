"""What is read and how: the settings of a batch file that concern its input, in one frozen value.

Holds no path that was resolved and opens nothing. ``tables.py`` makes these settings from a batch file's tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal
from urllib.parse import urlsplit

OnDuplicate = Literal["error", "skip"]
# Operations that move money: an item without an amount and a currency is refused.
MONEY_OPERATIONS: Final = frozenset({"refund", "payout", "invoice"})
# Names that mean something else in request templates; a column of such a name must be mapped to it.
TEMPLATE_NAMES: Final = frozenset(
    {"id", "target", "amount", "amount_minor", "currency", "currency_lower", "key", "batch"}
)


@dataclass(frozen=True, slots=True)
class Query:
    """A SQL query as input. ``url`` may hold a credential and is never shown in full."""

    url: str
    query: str

    @property
    def shown(self) -> str:
        """The address without user, password and parameters."""
        scheme, _, rest = self.url.partition(":")
        if not rest.startswith("//"):
            return f"{scheme}:{rest.partition('?')[0]}"
        try:
            parts = urlsplit(self.url)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return f"{scheme}:"
        # An at sign behind the host means a password with unescaped characters: then nothing behind the host is shown.
        return f"{scheme}://{host}{'' if '@' in self.url.partition('//')[2].partition('/')[2] else path}"


@dataclass(frozen=True, slots=True)
class ItemColumns:
    """Which column is which. ``currency_value`` is one currency for all rows, instead of a column.

    ``fields`` limits the columns that are carried into the items, None carries all that are not mapped. ``needs`` are
    further columns that must exist (those that request templates name).
    """

    id: str
    target: str | None = None
    amount: str | None = None
    amount_minor: str | None = None
    currency: str | None = None
    currency_value: str | None = None
    fields: tuple[str, ...] | None = None
    needs: tuple[str, ...] = ()

    def roles(self) -> dict[str, str]:
        """The mapped columns by role, in a fixed order."""
        named = {
            "id": self.id,
            "target": self.target,
            "amount": self.amount,
            "amount_minor": self.amount_minor,
            "currency": self.currency,
        }
        return {role: column for role, column in named.items() if column is not None}


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How a file is written. None means: proven by the whole file, or refused where it is not.

    ``preamble`` is the number of lines above the header; ``thousands`` empty means that digits are not grouped;
    ``hidden_rows`` is ``take`` or ``skip``: what becomes of a worksheet's hidden rows, which are refused if None;
    ``date_format`` (as in strftime) is how date cells of workbooks and databases are written as text, ISO 8601 if None.
    """

    encoding: str | None = None
    delimiter: str | None = None
    quote: str = '"'
    decimal: str | None = None
    thousands: str | None = None
    date_format: str | None = None
    sheet: str | None = None
    preamble: int | None = None
    hidden_rows: str | None = None


@dataclass(frozen=True, slots=True)
class Expect:
    """Control totals: the number of items and the total in minor units by currency, where stated."""

    items: int | None = None
    total: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InputSettings:
    """Everything that decides what an input means. ``max_amount`` is in minor units by currency.

    ``source`` is a path, relative to the folder that ``read`` is given, or a query. ``skip_bad_rows`` leaves rows with
    problems out instead of refusing the input; problems of the file as a whole are never skipped.
    """

    source: str | Query
    item: ItemColumns
    format: FileFormat = FileFormat()
    on_duplicate: OnDuplicate = "error"
    skip_bad_rows: bool = False
    max_amount: Mapping[str, int] = field(default_factory=dict)
    expect: Expect = Expect()
