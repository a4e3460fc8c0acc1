# ruff: noqa: S608 (column names are our own, and quoted words never reach a query)
"""Large statements: pairs that agree in everything are found by DuckDB, whatever is left goes through the usual code.

A pair is taken out only if nothing else on either side names it: its reference is there once on each side, amount and
currency agree, no other row carries its key, its own reference or its target. What is left is then compared exactly as if
nothing had been taken out. A file that is in any way unusual is not read here at all.

References are compared by their 128-bit digests and everything else by 64-bit hashes: a pair is only ever taken out by the
former, and a hash that agrees by chance only leaves a pair in. No text of either side is kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from payonce.reconcile.bulk_file import NotPlain, shape_of
from payonce.reconcile.bulk_read import StatementSide, Unusual
from payonce.reconcile.layout import Layout
from payonce.reconcile.table import Table

# Files from this size on are worth a database; below, the usual code is as fast.
LARGE: Final = 24 << 20
_MEMORY: Final = "1100MB"


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a large statement after the pairs that agree.

    ``clean`` gives number and minor units of those by currency; ``table`` holds the rows left, ``items`` the numbers of the
    items left. ``rows``, ``net``, ``moments`` and ``ignored`` are those of the whole file.
    """

    table: Table
    layout: Layout
    items: tuple[int, ...]
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
        try:
            config: dict[str, str | bool | int | float | list[str]] = {
                "threads": 2, "memory_limit": _MEMORY, "temp_directory": folder,
            }  # fmt: skip
            with duckdb.connect(config=config) as base, ThreadPoolExecutor(1) as beside:
                work = _Bulk(base, shape, operation)
                # The statement is read while this thread, whose ledger it is, writes the ledger's lines out.
                statement = beside.submit(work.read, path)
                with lines.open("w", encoding="utf-8", errors="surrogatepass") as file:
                    file.writelines(billing)
                return work.run(path, lines, keep, *statement.result())
        except (duckdb.Error, UnicodeError) as error:
            raise Unusual(str(error)) from error


def _supported(layout: Layout) -> None:
    amount = layout.amount
    odd = (layout.row_type is not None, layout.where, layout.credit, layout.rounding, layout.time_format, layout.zone,
           layout.zone_column, layout.account, layout.parent, amount.credit, amount.side, amount.unsigned,
           layout.decimal == ",", len(layout.key) > 1)  # fmt: skip
    if any(odd):
        raise Unusual("the layout needs the usual way")


class _Bulk(StatementSide):
    """One comparison in one database."""

    def run(
        self,
        path: Path,
        lines: Path,
        keep: Collection[str],
        moments: tuple[int, int] | None,
        direction: int,
        net: dict[str, int],
    ) -> Left:
        """The ledger's side, the comparison, and what is left."""
        self._load_ledger(lines)
        self._leave(keep)
        found = self.all_rows(
            "select cur, count(*), sum(minor) from s where m is not null and m not in (select m from bad) group by cur"
        )
        clean = {self.currencies[int(code)]: (int(number), int(minor)) for code, number, minor in found}
        left = self.all_rows("select row from s where m is null or m in (select m from bad) order by row")
        items = self.all_rows(f"select n from l where {_LEFT_ITEM} order by n")
        layout = replace(self._layout, amount=replace(self._layout.amount, outflow=direction))
        if layout.amount.unit == "major":
            layout = replace(layout, decimal=".", thousands="")
        table = self._shape.pick(path, [int(row) for (row,) in left])
        used = int(self.all_rows("select count(*) from s")[0][0])
        return Left(
            table, layout, tuple(int(n) for (n,) in items), clean, self._shape.rows, used, net, moments, self.ignored
        )

    def _load_ledger(self, lines: Path) -> None:
        cur = self.case("cur", {code: str(place) for place, code in enumerate(self.currencies)}, "-1")
        name = str(lines).replace("'", "''")
        self._base.execute(
            "create table l as select n, case when ref is not null then md5_number(ref) end as m, hash(lower(ref)) as href, "
            f"hash(lower(id)) as hid, hash(lower(target)) as htarget, minor, {cur} as cur, state, last, "
            "state = 'committed' and settlement not in ('failed', 'returned') as sound "
            f"from read_csv('{name}', header=false, auto_detect=false, delim='\x1f', quote='', escape='', strict_mode=true, columns="
            "{'n': 'bigint', 'id': 'varchar', 'ref': 'varchar', 'state': 'varchar', 'settlement': 'varchar', 'minor': 'bigint', "
            "'cur': 'varchar', 'target': 'varchar', 'last': 'varchar'})"
        )
        if self.all_rows("select count(*) from l where last is distinct from '.'")[0][0]:
            raise Unusual("ids with control characters")

    def _leave(self, keep: Collection[str]) -> None:
        """Which references stay: those that do not agree, and those that whatever stays names in any way."""
        base = self._base
        base.execute(
            "create table bad as select m from (select m, 1 as one, 0 as other, sound, minor, cur from s where m is not null "
            "union all select m, 0, 1, sound, minor, cur from l where m is not null) group by m having not (sum(one) = 1 "
            "and sum(other) = 1 and bool_and(sound) and min(minor) = max(minor) and min(cur) = max(cur))"
        )
        base.execute("create table named (h ubigint)")
        for column in ("hkey", "hown", "htarget", "href"):
            base.execute(
                f"insert into named select {column} from s where (m is null or m in (select m from bad)) and {column} is not null"
            )
        for column in ("hid", "htarget", "href"):
            base.execute(
                f"insert into named select {column} from l where {_LEFT_ITEM} and state in ('committed', 'unknown', 'pending') and {column} is not null"
            )
        if keep:
            base.executemany("insert into named select hash(lower(?))", [[item] for item in keep])
        if self.all_rows("select count(*) from named")[0][0]:
            named = "(select h from named)"
            base.execute(
                f"insert into bad select m from s where m is not null and (hkey in {named} or hown in {named} or htarget in {named} "
                f"or href in {named}) union select m from l where m is not null and (hid in {named} or htarget in {named} or href in {named})"
            )


# Items that stay: those whose reference does, and those without one.
_LEFT_ITEM: Final = "(m is null or m in (select m from bad))"
