# ruff: noqa: S608 (column names are our own, and quoted words never reach a query)
"""The statement's side of a large comparison: one pass over the file that keeps numbers only.

The file's first rows show which words there are and how amounts and times are written; the pass then reads all rows that
way and marks those that are written in another, of which there may be none. What words mean is decided by the code that
reads small files, once for each word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from payonce.core.errors import MoneyError
from payonce.core.money import currency_code
from payonce.intake.ids import fault_of
from payonce.reconcile.bulk_file import Shape
from payonce.reconcile.bulk_query import NO_SUM, ODD, POINT, PROOF, SOUND, SUSPECT, UNKNOWN, WORDS, Learnt, places
from payonce.reconcile.bulk_sql import Times, Unusual, quoted
from payonce.reconcile.layout import Role
from payonce.reconcile.rows import role_of_words, standing_of_words

if TYPE_CHECKING:
    import duckdb

# References that cannot have been mangled, whatever they are.
# So many rows are looked at before the pass, so many different words a column may have, so many own references a row.
_SAMPLE: Final = 20_000
_MOST_WORDS: Final = 250
_MOST_OWN: Final = 4


@dataclass(frozen=True, slots=True)
class Facts:
    """What the whole file says: first and last time, the sign of executions, net sums, accounts, and its ignored rows."""

    moments: tuple[int, int] | None
    time_form: str | None
    direction: int
    net: dict[str, int]
    accounts: frozenset[str]
    ignored: tuple[tuple[str, int], ...]


class StatementSide:
    """The statement of one comparison in one database: the view ``s``.

    A row of ``s`` has ``m``, a hash of its reference (NULL without one), and ``x``, a hash of reference, amount and
    currency if it is a plain execution in the period, else NULL; ``h...`` are hashes of what names it, without case.
    """

    def __init__(
        self, base: duckdb.DuckDBPyConnection, shape: Shape, operation: str, *, period: tuple[int | None, int | None]
    ) -> None:
        self._base = base
        self._shape = shape
        self._layout = shape.layout
        self._operation = operation
        self._period = period
        self._own = 0
        self.learnt: Learnt

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of ``s`` that hold hashes of names."""
        return ("hkey", *(f"hown{number}" for number in range(self._own)), "htarget", "href")

    @property
    def reasons(self) -> list[str]:
        """Why rows of each type are of no use; empty for those that are."""
        named = zip(self.learnt.words["type"], self.learnt.roles, strict=True)
        column, operation = self._shape.type_column, self._operation
        return [f"{column} {word!r} is no {operation}" if role is Role.OTHER else "" for word, role in named]

    def read(self, path: Path) -> Facts:
        """Reads the statement. Raises Unusual."""
        self._open(path)
        self._learn(f"(select * from raw limit {_SAMPLE})")
        facts = self._load()
        if facts is None:
            # Words that the first rows do not have: look through the whole file for them.
            self._learn("raw")
            facts = self._load()
        if facts is None:
            raise Unusual("words that cannot be told")
        return facts

    def all_rows(self, query: str, given: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """Everything that a query gives."""
        return self._base.execute(query, given).fetchall()

    def _open(self, path: Path) -> None:
        """The file as a view of the columns that matter; nothing is read yet."""
        shape, layout = self._shape, self._layout
        place = {name: f"c{number}" for number, name in enumerate(shape.head.names)}
        columns = ", ".join(f"'{column}': 'varchar'" for column in place.values())

        def cell(name: str) -> str:
            return f"trim({place[name]})" if shape.blanks else place[name]

        def filled(names: Iterable[str | None]) -> str:
            there = [cell(name) for name in names if name in place]
            if len(there) < 2:
                return there[0] if there else "''"
            return "coalesce(" + ", ".join([f"nullif({text}, '')" for text in there]) + ", '')"

        own = [name for name in layout.own if name in place]
        own += [name for name in place if layout.own_prefix and name.startswith(layout.own_prefix)]
        if len(own) > _MOST_OWN:
            raise Unusual("many own references")
        self._own = len(own)
        time = filled(layout.time)
        if layout.time == ("Date", "Time"):
            time = f"trim({cell('Date')} || ' ' || {cell('Time')})"
        named = {"ref": filled(layout.reference), "key": filled(layout.key), "target": filled(layout.target),
                 **{f"own{number}": cell(name) for number, name in enumerate(own)}, "parent": filled([layout.parent]),
                 "amount": filled([layout.amount.column]), "credit": filled([layout.amount.credit]),
                 "currency": filled([layout.currency]), "type": filled([shape.type_column]), "fee": filled([layout.fee]),
                 "status": filled([layout.status]), "net": filled([layout.net]), "zone": filled([layout.zone_column]),
                 "account": filled([layout.account]), "time": time}  # fmt: skip
        chosen = ", ".join(f"{text} as {name}" for name, text in named.items())
        self._base.execute(
            f"create view raw as select {chosen} from read_csv({quoted(str(path))}, header=false, skip={shape.skip}, "
            f"auto_detect=false, delim='{shape.head.delimiter}', quote='\"', escape='\"', strict_mode=true, "
            f"null_padding=false, nullstr='\x01', columns={{{columns}}})"
        )

    def _learn(self, rows: str) -> None:
        """The words of some rows, and how their times are written."""
        layout, shape = self._layout, self._shape
        words: dict[str, list[str]] = {}
        for name in WORDS:
            words[name] = [str(word) for (word,) in self.all_rows(f"select distinct {name} from {rows} order by 1")]
            if len(words[name]) > _MOST_WORDS:
                raise Unusual(f"too many words of {name}")
        types = words["type"]
        known = dict.fromkeys(types, Role.EXECUTION)
        if shape.type_column is not None:
            known = role_of_words(layout, self._operation, shape.type_column, types)
        standings = standing_of_words(layout, words["status"])
        try:
            codes = [currency_code(layout.currency_value or word) for word in words["currency"]]
        except MoneyError as error:
            raise Unusual("an unknown currency") from error
        self.learnt = Learnt(
            layout, shape.head.names, words, codes, [known[word] for word in types], [standings[word] for word in words["status"]],
            self._own, self._times_of(rows), self._direction_of(rows, known), self._period,
        )  # fmt: skip

    def _times_of(self, rows: str) -> Times | None:
        if not any(name in self._shape.head.names for name in self._layout.time):
            return None
        # Times rise in most reports: some from all over the rows tell the order of day and month.
        found = self.all_rows(
            f"select time, zone from {rows} where time <> '' using sample reservoir(2000 rows) repeatable (1)"
        )
        zones = [str(row[1]) for row in found] if self._layout.zone_column in self._shape.head.names else None
        return Times.proven_by([str(row[0]) for row in found], zones)

    def _direction_of(self, rows: str, roles: Mapping[str, Role]) -> int:
        """The sign of executions: the layout's, else that of the first one, which all others have to share."""
        amount = self._layout.amount
        if amount.unsigned:
            return 1
        if amount.outflow is not None:
            return 1 if self._operation == "invoice" else amount.outflow
        words = ", ".join(quoted(word) for word, role in roles.items() if role is Role.EXECUTION)
        first = self.all_rows(f"select starts_with(amount, '-') from {rows} where type in ({words or 'null'}) limit 1")
        return -1 if first and first[0][0] else 1

    def _load(self) -> Facts | None:
        """The rows in use as numbers, and what the whole file says. None where words turn up that were not learnt."""
        self._base.execute(f"create or replace table every as {self.learnt.numbers()}")
        others = places(self.learnt.roles, Role.OTHER)
        used = f"where ty not in ({others})" if others else ""
        self._base.execute(f"create or replace view s as select rowid + 1 as row, * from every {used}")
        found = self.all_rows(
            "select ty, st, cu, zo, ac, count(*), bit_or(flags), count(*) filter (minor < 0), min(moment), max(moment), "
            "sum(total) from every group by ty, st, cu, zo, ac"
        )
        if sum(row[5] for row in found) != self._shape.rows:
            raise Unusual("blank lines or line breaks inside fields")
        if any(code == UNKNOWN for row in found for code in row[:5]):
            return None
        self._check(found)
        return self._facts(found)

    def _check(self, found: list[tuple[Any, ...]]) -> None:
        flags = 0
        for row in found:
            flags |= int(row[6])
        if flags & ODD:
            raise Unusual("amounts or times in another form")
        if flags & NO_SUM:
            raise Unusual("rows that do not add up")
        if flags & POINT and not flags & PROOF:
            raise Unusual("no amount proves the decimal point")
        if flags & SUSPECT:
            # References that may have been mangled are looked at one by one.
            odd = self.all_rows(
                f"select distinct ref from raw where ref <> '' and not regexp_full_match(ref, '{SOUND}')"
            )
            if any(fault_of(str(ref)) is not None for (ref,) in odd):
                raise Unusual("a reference that cannot be one")
        proven = self._layout.amount.outflow is None and not self._layout.amount.unsigned
        if proven and any(row[7] for row in found if self.learnt.roles[row[0]] is Role.EXECUTION):
            raise Unusual("amounts of both signs")

    def _facts(self, found: list[tuple[Any, ...]]) -> Facts:
        first, last = [row[8] for row in found if row[8] is not None], [row[9] for row in found if row[9] is not None]
        moments = (
            (min(first), max(last) + self.learnt.times.resolution_us) if first and last and self.learnt.times else None
        )
        net: Counter[str] = Counter()
        ignored: Counter[str] = Counter()
        for row in found:
            net[self.learnt.currencies[row[2]]] += int(row[10])
            if self.reasons[row[0]]:
                ignored[self.reasons[row[0]]] += int(row[5])
        accounts = frozenset(self.learnt.words["account"][row[4]] for row in found) - {""}
        form = self.learnt.times.form if self.learnt.times is not None else None
        return Facts(moments, form, self.learnt.direction, dict(net), accounts, tuple(sorted(ignored.items())))
