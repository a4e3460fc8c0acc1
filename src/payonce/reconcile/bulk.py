# ruff: noqa: S608 (column names are our own, and quoted words never reach a query)
"""Large statements: pairs that agree in everything are found by DuckDB, whatever is left goes through the usual code.

A pair is taken out only if nothing else in either side names it: its reference is there once on each side, amount and
currency agree, no other row carries its key, its own reference or its target. What is left is then compared exactly as if
nothing had been taken out. A file that is in any way unusual is not read here at all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from payonce.core.errors import MoneyError
from payonce.core.money import currency_code, exponent
from payonce.intake.ids import fault_of
from payonce.reconcile.bulk_file import NotPlain, Shape, shape_of
from payonce.reconcile.layout import Layout, Role
from payonce.reconcile.rows import role_of_words, standing_of_words
from payonce.reconcile.table import Table
from payonce.reconcile.times import TimeFault, read_times

if TYPE_CHECKING:
    import duckdb

# Files from this size on are worth a database; below, the usual code is as fast.
LARGE: Final = 24 << 20
_MEMORY: Final = "1100MB"
_MOST_OPEN: Final = 200_000
_COLUMNS: Final = ("ref", "key", "own", "target", "amount", "currency", "type", "status", "time", "fee", "net")
_SOUND: Final = r"[A-Za-z]{1,12}[_-][A-Za-z0-9_-]*[A-Za-z0-9]"


class Unusual(Exception):
    """The file is not one for this way; the usual one reads it, or says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a large statement after the pairs that agree.

    ``clean`` gives number and minor units of those by currency; ``table`` holds the rows left, ``items`` the ids of the
    items left. ``rows``, ``net``, ``moments`` and ``ignored`` are those of the whole file.
    """

    table: Table
    layout: Layout
    items: tuple[str, ...]
    clean: dict[str, tuple[int, int]]
    rows: int
    used: int
    net: dict[str, int]
    moments: tuple[int, int] | None
    ignored: tuple[tuple[str, int], ...]


def take_clean(
    path: Path, layouts: Iterable[Layout], operation: str, *, billing: Iterable[str], keep: Collection[str] = ()
) -> Left:
    """Reads a large CSV file beside a ledger's lines (see ``Ledger.billing``) and takes the clean pairs out.

    ``keep`` are items that must not be taken out. Raises Unusual; nothing is decided then.
    """
    import duckdb

    try:
        shape = shape_of(path, list(layouts))
    except NotPlain as error:
        raise Unusual(str(error)) from error
    _supported(shape.layout)
    with tempfile.TemporaryDirectory(prefix="payonce-") as folder:
        lines = Path(folder) / "ledger"
        with lines.open("w", encoding="utf-8", errors="surrogatepass") as file:
            file.writelines(billing)
        try:
            config: dict[str, str | bool | int | float | list[str]] = {
                "threads": 2,
                "memory_limit": _MEMORY,
                "temp_directory": folder,
            }
            with duckdb.connect(str(Path(folder) / "bulk.duckdb"), config=config) as base:
                return _Bulk(base, shape, operation).run(path, lines, keep)
        except (duckdb.Error, UnicodeError) as error:
            raise Unusual(str(error)) from error


def _supported(layout: Layout) -> None:
    amount = layout.amount
    odd = (layout.row_type is not None, layout.where, layout.credit, layout.rounding, layout.time_format, layout.zone,
           layout.zone_column, layout.account, layout.parent, amount.credit, amount.side, amount.unsigned,
           layout.decimal == ",", len(layout.key) > 1)  # fmt: skip
    if any(odd):
        raise Unusual("the layout needs the usual way")


class _Bulk:
    """One comparison in one database."""

    def __init__(self, base: duckdb.DuckDBPyConnection, shape: Shape, operation: str) -> None:
        self._base = base
        self._shape = shape
        self._layout = shape.layout
        self._operation = operation

    def run(self, path: Path, lines: Path, keep: Collection[str]) -> Left:
        """All steps."""
        rows = self._load(path)
        self._load_ledger(lines)
        self._translate()
        net = self._amounts()
        moments = self._moments()
        self._check_ids()
        self._pair(keep)
        clean = {
            str(c): (int(n), int(m))
            for c, n, m in self._all("select cur, count(*), sum(minor) from clean group by cur")
        }
        ignored = self._ignored()
        numbers = [int(row) for (row,) in self._all("select row from used anti join clean using (row) order by row")]
        table = self._shape.pick(path, numbers)
        items = tuple(str(item) for (item,) in self._all("select id from left_items order by n"))
        used = int(self._one("select count(*) from used"))
        direction = int(self._one("select coalesce(any_value(direction), 1) from used"))
        layout = replace(self._layout, amount=replace(self._layout.amount, outflow=direction))
        if layout.amount.unit == "major":
            layout = replace(layout, decimal=".", thousands="")
        return Left(table, layout, items, clean, rows, used, net, moments, ignored)

    def _all(self, query: str, given: list[Any] | None = None) -> list[tuple[Any, ...]]:
        return self._base.execute(query, given).fetchall()

    def _one(self, query: str) -> Any:
        return self._all(query)[0][0]

    def _load(self, path: Path) -> int:
        """The columns that matter, as text, with the row's number. The number of rows must be that of the lines."""
        shape = self._shape
        place = {name: f"c{number}" for number, name in enumerate(shape.head.names)}
        columns = ", ".join(f"'{column}': 'varchar'" for column in place.values())

        def filled(names: Iterable[str]) -> str:
            there = [f"nullif(trim({place[name]}), '')" for name in names if name in place]
            return f"coalesce({', '.join([*there, repr('')])})"

        layout = self._layout
        own = [*layout.own, *(name for name in place if layout.own_prefix and name.startswith(layout.own_prefix))]
        if len(own) > 1 and layout.own_prefix:
            raise Unusual("several own references")
        named = {"ref": layout.reference, "key": layout.key, "own": own, "target": layout.target,
                 "amount": [layout.amount.column], "currency": [layout.currency or ""], "type": [shape.type_column or ""],
                 "status": [layout.status or ""], "time": layout.time, "fee": [layout.fee or ""], "net": [layout.net or ""]}  # fmt: skip
        chosen = ", ".join(f"{filled(named[name])} as {name}" for name in _COLUMNS)
        reader = (
            f"read_csv(?, header=false, skip={shape.skip}, auto_detect=false, delim=?, quote='\"', escape='\"', "
            f"strict_mode=true, null_padding=false, columns={{{columns}}}, encoding='utf-8')"
        )
        query = f"create table raw as select row_number() over () as row, {chosen} from {reader}"
        self._base.execute(query, [str(path), shape.head.delimiter])
        rows = int(self._one("select count(*) from raw"))
        if rows != shape.rows:
            raise Unusual("blank lines or line breaks inside fields")
        return rows

    def _load_ledger(self, lines: Path) -> None:
        self._base.execute(
            "create table items as select * from read_csv(?, header=false, auto_detect=false, delim='\x1f', quote='', "
            "escape='', strict_mode=true, columns={'n': 'bigint', 'id': 'varchar', 'ref': 'varchar', 'state': 'varchar', "
            "'settlement': 'varchar', 'minor': 'bigint', 'cur': 'varchar', 'target': 'varchar', 'last': 'varchar'})",
            [str(lines)],
        )
        if self._one("select count(*) from items where last is distinct from '.'"):
            raise Unusual("ids with control characters")

    def _translate(self) -> None:
        """What the words of types, states and currencies mean, decided once for each word by the usual code."""
        words = [str(word) for (word,) in self._all("select distinct type from raw limit 2000")]
        if self._shape.type_column is None:
            roles = dict.fromkeys(words, Role.EXECUTION)
        else:
            roles = role_of_words(self._layout, self._operation, self._shape.type_column, words)
        statuses = [str(word) for (word,) in self._all("select distinct status from raw limit 2000")]
        standings = standing_of_words(self._layout, statuses)
        self._base.execute("create table roles (type varchar, role varchar)")
        self._base.executemany("insert into roles values (?, ?)", [[word, role.value] for word, role in roles.items()])
        self._base.execute("create table standings (status varchar, standing varchar)")
        self._base.executemany("insert into standings values (?, ?)", [[w, s.value] for w, s in standings.items()])
        codes = [str(code) for (code,) in self._all("select distinct currency from raw limit 2000")]
        self._base.execute("create table currencies (currency varchar, cur varchar, factor bigint)")
        for code in codes:
            try:
                cur = currency_code(self._layout.currency_value or code)
            except MoneyError as error:
                raise Unusual("an unknown currency") from error
            factor = 1 if self._layout.amount.unit == "minor" else 10 ** exponent(cur)
            self._base.execute("insert into currencies values (?, ?, ?)", [code, cur, factor])

    def _amounts(self) -> dict[str, int]:
        """Exact minor units for every row; a row that is odd in any way makes the file unusual. Returns the net sums."""
        major = self._layout.amount.unit == "major"
        form = r"-?\d+(\.\d+)?" if major else r"-?\d+"
        checked = ["amount"] + [name for name in ("fee", "net") if getattr(self._layout, name) is not None]
        for name in checked:
            empty = "" if name == "amount" else f" and {name} <> ''"
            if self._one(f"select count(*) from raw where not regexp_full_match({name}, '{form}'){empty}"):
                raise Unusual("amounts in another form")
        if major and self._layout.decimal != ".":
            doubtful = r"-?[1-9]\d{0,2}\.\d{3}"
            proof = f"regexp_full_match(amount, '-?\\d+\\.\\d+') and not regexp_full_match(amount, '{doubtful}')"
            if not self._one(f"select count(*) from raw where {proof}") and self._one(
                "select count(*) from raw where amount like '%.%'"
            ):
                raise Unusual("no amount proves the decimal point")
        value = "cast({} as decimal(30, 8)) * factor"
        gross, fee = value.format("amount"), value.format("coalesce(nullif(fee, ''), '0')")
        net = value.format("coalesce(nullif(net, ''), '0')") if "net" in checked else gross
        self._base.execute(
            f"create table known as select row, ref, key, own, target, type, cur, role, standing, {gross} as gross, {net} as net, "
            f"{fee} as fee, net = '' as open from raw join roles using (type) join standings using (status) join currencies using (currency)"
        )
        sign = self._layout.fee_sign
        odd = f"gross % 1 <> 0 or net % 1 <> 0 or fee % 1 <> 0 or (not open and gross + {sign} * fee <> net)"
        if self._one("select count(*) from known") != self._shape.rows or (
            "net" in checked and self._one(f"select count(*) from known where {odd}")
        ):
            raise Unusual("rows that do not add up")
        if self._one("select count(*) from known where gross % 1 <> 0"):
            raise Unusual("more decimals than the currency has")
        return {str(cur): int(total) for cur, total in self._all("select cur, sum(net) from known group by cur")}

    def _moments(self) -> tuple[int, int] | None:
        if not any(name in self._shape.head.names for name in self._layout.time):
            return None
        shortest, longest, first, last, filled = self._all(
            "select min(length(time)), max(length(time)), min(time), max(time), count(*) filter (time <> '') from raw"
        )[0]
        if not filled:
            return None
        form = r"\d{10}|\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?Z?"
        # Texts of one length and form are in the order of the times that they are.
        if shortest != longest or self._one(f"select count(*) from raw where not regexp_full_match(time, '{form}')"):
            raise Unusual("times in several forms")
        try:
            times = read_times([str(first), str(last)])
        except TimeFault as fault:
            raise Unusual(fault.message) from fault
        begin, end = times
        return None if begin is None or end is None else (begin.at_us, end.end_us)

    def _check_ids(self) -> None:
        """References that may have been mangled on their way are looked at one by one."""
        for (ref,) in self._all(
            f"select distinct ref from raw where ref <> '' and not regexp_full_match(ref, '{_SOUND}')"
        ):
            if fault_of(str(ref)) is not None:
                raise Unusual("a reference that cannot be one")

    def _pair(self, keep: Collection[str]) -> None:
        """Pairs that agree and that nothing else names."""
        base = self._base
        outflow = self._layout.amount.outflow
        if outflow is None:
            low, high = self._all(
                "select min(sign(gross)), max(sign(gross)) from known where role = 'execution' and gross <> 0"
            )[0]
            if low != high:
                raise Unusual("amounts of both signs")
            outflow = int(low or 1)
        if self._operation == "invoice" and self._layout.amount.outflow is not None:
            outflow = 1
        base.execute(
            f"create table used as select row, ref, key, own, target, cur, role, standing, cast(gross * {outflow} as bigint) as minor, "
            f"{outflow} as direction from known where role <> 'other'"
        )
        base.execute("create table once as select ref from used where ref <> '' group by ref having count(*) = 1")
        base.execute(
            "create table known_once as select any_value(n) as n, ref from items where ref <> '' group by ref having count(*) = 1"
        )
        base.execute(
            "create table clean as select u.row, i.n, i.id, i.target as item_target, u.key, u.own, u.ref, u.target, u.cur, u.minor "
            "from used u join once using (ref) join known_once k using (ref) join items i on i.n = k.n "
            "where u.role = 'execution' and u.standing = 'done' and u.minor > 0 and i.state = 'committed' "
            "and i.settlement not in ('failed', 'returned') and i.minor = u.minor and i.cur = u.cur"
        )
        base.execute("create table kept_items (id varchar)")
        if keep:
            base.executemany("insert into kept_items values (?)", [[item] for item in keep])
        self._put_back()
        few = int(self._one("select count(*) from items where state <> 'committed'")) <= _MOST_OPEN
        others = "" if few else "and (i.state in ('committed', 'pending', 'unknown') or i.id in (select v from named))"
        base.execute(
            f"create table left_items as select i.n, i.id from items i anti join clean c on c.n = i.n where true {others}"
        )

    def _put_back(self) -> None:
        """Pairs that a row or item left over names in any way are no longer taken out."""
        base = self._base
        base.execute("create table named (v varchar)")
        for column in ("ref", "key", "own", "target"):
            base.execute(
                f"insert into named select distinct {column} from used anti join clean using (row) where {column} <> ''"
            )
        base.execute(
            "insert into named select i.ref from items i anti join clean c on c.n = i.n where i.ref <> '' "
            "union all select lower(target) from used anti join clean using (row) where target <> ''"
        )
        base.execute("insert into named select id from kept_items")
        if not self._one("select count(*) from named"):
            return
        places = ("id", "item_target", "key", "own", "ref", "target")
        tests = " or ".join(f"{place} in (select v from named)" for place in places)
        base.execute(f"delete from clean where {tests}")

    def _ignored(self) -> tuple[tuple[str, int], ...]:
        if self._shape.type_column is None:
            return ()
        found = self._all("select type, count(*) from known where role = 'other' group by type order by type")
        return tuple(
            (f"{self._shape.type_column} {word!r} is no {self._operation}", int(count)) for word, count in found
        )
