# ruff: noqa: S608 (column names are our own, and quoted words never reach a query)
"""The query that reads a large statement once and keeps numbers, made from what the file's first rows showed. Runs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from payonce.core.money import exponent
from payonce.reconcile.bulk_sql import Times, Unusual, case, minor_of, odd_amount, quoted
from payonce.reconcile.layout import Layout, Role, Standing
from payonce.reconcile.times import fixed_offset

# The columns whose words are few; each becomes a number by its first two letters, UNKNOWN for a word not learnt.
WORDS: Final = ("type", "status", "currency", "zone", "account")
UNKNOWN: Final = 255
# What a row's flags say: written in another way, a reference to look at, a decimal point, one that cannot be a grouped
# thousand, a fee that does not fit.
ODD, SUSPECT, POINT, PROOF, NO_SUM = 1, 2, 4, 8, 16
# What the two rows of a pair agree in; the reference is hashed once more, in another way than for ``m``.
PAIR: Final = "hash(concat(ref, '~'), minor, code)"
# References that cannot have been mangled, whatever they are; most are told by their first letter and an underscore.
PLAINLY_SOUND: Final = "(contains(ref, '_') and ascii(ref) between 65 and 122 and length(ref) <= 500)"
SOUND: Final = (
    "[A-Za-z]{1,12}_[A-Za-z0-9_-]{1,200}|[A-Za-z0-9_]{12,200}|[A-Z]{2,12}-[A-Z0-9_-]{1,200}"
    "|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is known of a file before it is read: its words with their meaning, in which way times and amounts are written,
    and how many columns of own references it has. ``currencies``, ``roles`` and ``standings`` are those of the words."""

    layout: Layout
    columns: Sequence[str]
    words: Mapping[str, Sequence[str]]
    currencies: Sequence[str]
    roles: Sequence[Role]
    standings: Sequence[Standing]
    own: int
    times: Times | None
    direction: int
    period: tuple[int | None, int | None]

    def numbers(self) -> str:
        """The query that reads the file."""
        amount = self.layout.amount
        executions, done = places(self.roles, Role.EXECUTION), places(self.standings, Standing.DONE)
        names = {"hkey": "key", **{f"hown{n}": f"own{n}" for n in range(self.own)}, "htarget": "target", "href": "ref"}
        gross = self._by_currency("amount")
        if self._has(amount.credit):
            gross = f"({self._by_currency('credit')}) - ({gross})"
        minor = f"abs({gross})" if amount.unsigned else f"({gross}) * {self.direction}"
        total = (
            f"case when net <> '' then {self._by_currency('net')} else {gross} end"
            if self._has(self.layout.net)
            else gross
        )
        moment = "null::bigint"
        if self.times is not None:
            moment = f"case when time <> '' then {self.times.us} - ({self._offset()}) end"
        flags = " + ".join(f"case when {odd} then {flag} else 0 end" for odd, flag in self._oddities(gross))
        codes = [case(name, {w: str(n) for n, w in enumerate(self.words[name])}, str(UNKNOWN)) for name in WORDS]
        code = case(
            "currency", {w: quoted(c) for w, c in zip(self.words["currency"], self.currencies, strict=True)}, "''"
        )
        inner = (
            f"select * exclude (amount, credit, fee, net, type, status, zone, account, time), {code} as code, {minor} as minor, "
            f"{total} as total, {moment} as moment, cast({flags} as utinyint) as flags, "
            + ", ".join(f"cast({text} as utinyint) as {name[:2]}" for name, text in zip(WORDS, codes, strict=True))
            + " from raw"
        )
        sound = [f"ty in ({executions or -1})", f"st in ({done or -1})", "minor > 0", *self._inside()]
        return (
            f"select case when ref <> '' then hash(ref) end as m, case when {' and '.join(sound)} then {PAIR} else 0 end as x, "
            + "".join(f"{short(column)} as {name}, " for name, column in names.items())
            + f"case when ty not in ({executions or -1}) and parent <> '' then hash(parent) end as hparent, "
            f"minor, total, moment, flags, ty, st, cu, zo, ac from ({inner})"
        )

    def _by_currency(self, column: str, odd: bool = False) -> str:
        """A column's minor units (or whether its text is odd), whatever the row's currency."""
        unit = self.layout.amount.unit
        made = odd_amount if odd else minor_of
        texts = {
            word: made(column, 0 if unit == "minor" else exponent(code), unit=unit)
            for word, code in zip(self.words["currency"], self.currencies, strict=True)
        }
        return next(iter(texts.values())) if len(set(texts.values())) == 1 else case("currency", texts, "null")

    def _oddities(self, gross: str) -> list[tuple[str, int]]:
        """What makes a row, and so the file, one for the usual way; each with its flag."""
        layout = self.layout
        columns = {"amount": layout.amount.column, "credit": layout.amount.credit, "fee": layout.fee, "net": layout.net}
        odd = [
            f"coalesce({self._by_currency(name, odd=True)}, true)"
            for name, column in columns.items()
            if self._has(column)
        ]
        if not self._has(layout.amount.credit):
            odd.append("amount = ''")
        if self.times is not None:
            odd.append(f"(time <> '' and {self.times.odd})")
        flags = [
            (f"({' or '.join(odd)})", ODD),
            (
                f"case when {PLAINLY_SOUND} then false else ref <> '' and not regexp_full_match(ref, '{SOUND}') end",
                SUSPECT,
            ),
        ]
        if layout.amount.unit == "major" and layout.decimal != ".":
            flags.append(("contains(amount, '.')", POINT))
            flags.append((r"(contains(amount, '.') and not regexp_full_match(amount, '-?[1-9]\d{0,2}\.\d{3}'))", PROOF))
        if self._has(layout.net):
            fee = self._by_currency("fee") if self._has(layout.fee) else "0"
            flags.append(
                (f"(net <> '' and {gross} + {layout.fee_sign} * ({fee}) <> {self._by_currency('net')})", NO_SUM)
            )
        return flags

    def _has(self, column: str | None) -> bool:
        return column is not None and column in self.columns

    def _offset(self) -> str:
        """The offset from UTC of a row's zone, in microseconds."""
        if not self._has(self.layout.zone_column):
            return "0"
        offsets: dict[str, str] = {}
        for zone in self.words["zone"]:
            offset = fixed_offset(zone) if zone else 0
            if offset is None:
                raise Unusual("a zone with summer time")
            offsets[zone] = str(offset)
        return case("zone", offsets, "0")

    def _inside(self) -> list[str]:
        start, end = self.period
        bounds = [
            *([f"moment >= {start}"] if start is not None else []),
            *([f"moment < {end}"] if end is not None else []),
        ]
        return [f"(moment is null or ({' and '.join(bounds)}))"] if bounds else []


def places(kinds: Sequence[object], wanted: object) -> str:
    """Which words are of a kind, as a list for a query."""
    return ", ".join(str(place) for place, kind in enumerate(kinds) if kind is wanted)


def short(column: str) -> str:
    """Half a hash of a name without its case, NULL where it is empty. Two names that share one only leave a pair in."""
    return f"case when {column} <> '' then cast(hash(lower({column})) & 4294967295 as uinteger) end"
