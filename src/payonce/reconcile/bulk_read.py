# ruff: noqa: S608 (column names are our own, and quoted words never reach a query)
"""The statement's side of a large comparison: one pass that keeps nothing and looks, and one that keeps numbers only.

What words mean is decided by the code that reads small files, once for each word; a file in which anything is written in
another than the one plain way is not read here.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from payonce.core.errors import MoneyError
from payonce.core.money import currency_code, exponent
from payonce.intake.ids import fault_of
from payonce.reconcile.bulk_file import Shape
from payonce.reconcile.layout import Role, Standing
from payonce.reconcile.rows import role_of_words, standing_of_words
from payonce.reconcile.times import TimeFault, read_times

if TYPE_CHECKING:
    import duckdb

_SOUND: Final = r"[A-Za-z]{1,12}[_-][A-Za-z0-9_-]*[A-Za-z0-9]"


class Unusual(Exception):
    """The file is not one for this way; the usual one reads it, or says what is wrong with it."""


class StatementSide:
    """The statement of one comparison in one database."""

    def __init__(self, base: duckdb.DuckDBPyConnection, shape: Shape, operation: str) -> None:
        self._base = base
        self._shape = shape
        self._layout = shape.layout
        self._operation = operation
        self._codes: dict[str, tuple[str, int]] = {}
        self.currencies: list[str] = []
        self.ignored: tuple[tuple[str, int], ...] = ()
        self._roles: dict[str, Role] = {}
        self._standings: dict[str, Standing] = {}

    def read(self, path: Path) -> tuple[tuple[int, int] | None, int, dict[str, int]]:
        """The statement's side: its first and last time, the sign of executions, and its net sums."""
        self._open(path)
        moments, direction = self._look()
        return moments, direction, self._load(direction)

    def all_rows(self, query: str, given: list[Any] | None = None) -> list[tuple[Any, ...]]:
        """Everything that a query gives."""
        return self._base.execute(query, given).fetchall()

    def _open(self, path: Path) -> None:
        """The file as a view of the columns that matter; nothing is read yet."""
        shape, layout = self._shape, self._layout
        place = {name: f"c{number}" for number, name in enumerate(shape.head.names)}
        columns = ", ".join(f"'{column}': 'varchar'" for column in place.values())

        def filled(names: Iterable[str]) -> str:
            there = [f"trim({place[name]})" for name in names if name in place]
            if len(there) < 2:
                return there[0] if there else "''"
            return "coalesce(" + ", ".join([f"nullif({cell}, '')" for cell in there]) + ", '')"

        own = [*layout.own, *(name for name in place if layout.own_prefix and name.startswith(layout.own_prefix))]
        if len(own) > 1:
            raise Unusual("several own references")
        named = {"ref": layout.reference, "key": layout.key, "own": own, "target": layout.target,
                 "amount": [layout.amount.column], "currency": [layout.currency or ""], "type": [shape.type_column or ""],
                 "status": [layout.status or ""], "time": layout.time, "fee": [layout.fee or ""], "net": [layout.net or ""]}  # fmt: skip
        chosen = ", ".join(f"{filled(names)} as {name}" for name, names in named.items())
        name = str(path).replace("'", "''")
        self._base.execute(
            f"create view raw as select {chosen} from read_csv('{name}', header=false, skip={shape.skip}, auto_detect=false, "
            f"delim='{shape.head.delimiter}', quote='\"', escape='\"', strict_mode=true, null_padding=false, nullstr='\x01', "
            f"columns={{{columns}}})"
        )

    def _look(self) -> tuple[tuple[int, int] | None, int]:
        """One pass that keeps nothing: the words there are, and whether all rows are written in one plain way.

        Returns the file's first and last time and the sign that executions have.
        """
        major = self._layout.amount.unit == "major"
        form = r"-?\d+(\.\d+)?" if major else r"-?\d+"
        time = r"\d{10}|\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?Z?"
        found = self.all_rows(
            "select type, status, currency, count(*), "
            f"count(*) filter (not regexp_full_match(amount, '{form}') or not regexp_full_match(fee, '({form})?') "
            f"or not regexp_full_match(net, '({form})?')), "
            "max(greatest(length(split_part(amount, '.', 2)), length(split_part(fee, '.', 2)), length(split_part(net, '.', 2)))), "
            r"count(*) filter (regexp_full_match(amount, '-?\d+\.\d+') and not regexp_full_match(amount, '-?[1-9]\d{0,2}\.\d{3}')), "
            "count(*) filter (starts_with(amount, '-')), count(*) filter (contains(amount, '.')), "
            "min(length(time)), max(length(time)), min(time), max(time), "
            f"count(*) filter (not regexp_full_match(time, '({time})?')), max(length(amount)) from raw group by type, status, currency"
        )
        if sum(row[3] for row in found) != self._shape.rows:
            raise Unusual("blank lines or line breaks inside fields")
        if any(row[4] for row in found) or any(row[14] > 18 for row in found):
            raise Unusual("amounts in another form")
        if major and self._layout.decimal != "." and any(row[8] for row in found) and not any(row[6] for row in found):
            raise Unusual("no amount proves the decimal point")
        self._words(found)
        return self._moments(found), self._direction(found)

    def _words(self, found: list[tuple[Any, ...]]) -> None:
        """What the words of types, states and currencies mean, decided once for each word by the usual code."""
        types, statuses = ([str(word) for word in dict.fromkeys(row[place] for row in found)] for place in (0, 1))
        if self._shape.type_column is None:
            self._roles = dict.fromkeys(types, Role.EXECUTION)
        else:
            self._roles = role_of_words(self._layout, self._operation, self._shape.type_column, types)
        self._standings = standing_of_words(self._layout, statuses)
        others = {
            word: sum(row[3] for row in found if row[0] == word)
            for word, role in self._roles.items()
            if role is Role.OTHER
        }
        self.ignored = tuple(
            (f"{self._shape.type_column} {w!r} is no {self._operation}", n) for w, n in sorted(others.items())
        )
        for row in found:
            text = str(row[2])
            try:
                code = currency_code(self._layout.currency_value or text)
            except MoneyError as error:
                raise Unusual("an unknown currency") from error
            digits = 0 if self._layout.amount.unit == "minor" else exponent(code)
            if row[5] > digits and self._layout.amount.unit == "major":
                raise Unusual("more decimals than the currency has")
            self._codes[text] = (code, digits)
        self.currencies = sorted({code for code, _ in self._codes.values()})

    def _direction(self, found: list[tuple[Any, ...]]) -> int:
        outflow = self._layout.amount.outflow
        if outflow is not None:
            return 1 if self._operation == "invoice" else outflow
        executions = [row for row in found if self._roles[str(row[0])] is Role.EXECUTION]
        negative, count = sum(row[7] for row in executions), sum(row[3] for row in executions)
        if negative not in (0, count):
            raise Unusual("amounts of both signs")
        return -1 if negative else 1

    def _moments(self, found: list[tuple[Any, ...]]) -> tuple[int, int] | None:
        """Texts of one length and form are in the order of the times that they are."""
        if not any(name in self._shape.head.names for name in self._layout.time):
            return None
        if any(row[13] for row in found) or len({length for row in found for length in row[9:11]}) != 1:
            raise Unusual("times in several forms")
        try:
            begin, end = read_times([min(str(row[11]) for row in found), max(str(row[12]) for row in found)])
        except TimeFault as fault:
            raise Unusual(fault.message) from fault
        return None if begin is None or end is None else (begin.at_us, end.end_us)

    def case(self, column: str, values: dict[str, str], otherwise: str) -> str:
        """A SQL expression that translates a column's words."""
        if not values:
            return otherwise
        cases = " ".join(f"when {quoted(word)} then {value}" for word, value in values.items())
        return f"case {column} {cases} else {otherwise} end"

    def _load(self, direction: int) -> dict[str, int]:
        """The rows in use as numbers. Returns the net sums of all rows; rows that do not add up make the file unusual."""
        number = {text: str(self.currencies.index(code)) for text, (code, _) in self._codes.items()}
        cur = self.case("currency", number, "null")
        minor = {
            name: self.case(
                "currency", {text: _minor(name, digits) for text, (_, digits) in self._codes.items()}, "null"
            )
            for name in ("amount", "fee", "net")
        }
        role = self.case("type", {word: quoted(role.value) for word, role in self._roles.items()}, "'other'")
        done = self.case("status", {w: str(s is Standing.DONE).lower() for w, s in self._standings.items()}, "true")
        name = {column: f"hash(lower(nullif({column}, '')))" for column in ("key", "own", "target", "ref")}
        hashes = ", ".join(f"case when {column} <> '' then {value} end as h{column}" for column, value in name.items())
        odd = f"regexp_full_match(ref, '{_SOUND}') or ref = ''"
        checks = self._layout.net is not None and self._layout.net in self._shape.head.names
        self._base.execute(
            f"create table every as select row_number() over () as row, case when ref <> '' then md5_number(ref) end as m, {hashes}, "
            f"{minor['amount']} as gross, {cur} as cur, {role} as role, {done} as done, "
            f"case when {odd} then null else ref end as odd"
            + (f", {minor['fee']} as fee, case when net <> '' then {minor['net']} end as net" if checks else "")
            + " from raw"
        )
        self._check(checks=checks)
        total = "coalesce(net, gross)" if checks else "gross"
        net = {
            self.currencies[int(c)]: int(t)
            for c, t in self.all_rows(f"select cur, sum({total}) from every group by cur")
        }
        self._base.execute(
            f"create view s as select row, m, hkey, hown, htarget, href, cur, gross * {direction} as minor, "
            f"role = 'execution' and done and gross * {direction} > 0 as sound from every where role <> 'other'"
        )
        return net

    def _check(self, *, checks: bool) -> None:
        """References that may have been mangled are looked at one by one; fees and net amounts must fit."""
        for (ref,) in self.all_rows("select distinct odd from every where odd is not null"):
            if fault_of(str(ref)) is not None:
                raise Unusual("a reference that cannot be one")
        if (
            checks
            and self.all_rows(
                f"select count(*) from every where net is not null and gross + {self._layout.fee_sign} * fee <> net"
            )[0][0]
        ):
            raise Unusual("rows that do not add up")


def quoted(word: str) -> str:
    """A word as SQL text."""
    return "'" + word.replace("'", "''") + "'"


def _minor(column: str, digits: int) -> str:
    """Whole minor units of a column whose decimals were counted before."""
    text = f"coalesce(nullif({column}, ''), '0')"
    return (
        f"cast(cast({text} as decimal(18, {digits})) * {10**digits} as bigint)" if digits else f"cast({text} as bigint)"
    )
