# ruff: noqa: S608 (column names are our own, and quoted words never reach a query)
"""Large statements: pairs that agree in everything are found by DuckDB, whatever is left goes through the usual code.

A pair is taken out only if nothing else on either side names it: its reference is there once on each side, amount and
currency agree, no other row carries its key, its own reference or its target. What is left is then compared exactly as if
nothing had been taken out. A file that is in any way unusual is not read here at all.

A pair is taken out by two 64-bit hashes that agree, of the reference and of reference, amount and currency together, each
there once on either side. Other names are compared by 32 bits: one that agrees by chance only leaves a pair in. No text of
either side is kept.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from payonce.intake.settings import FileFormat
from payonce.reconcile.bulk_file import NotPlain, shape_of
from payonce.reconcile.bulk_ledger import LEDGER_NAMES, load_ledger
from payonce.reconcile.bulk_query import short
from payonce.reconcile.bulk_read import Facts, StatementSide
from payonce.reconcile.bulk_sql import Unusual
from payonce.reconcile.layout import Layout
from payonce.reconcile.table import Table

# Files from this size on are worth a database; below, the usual code is as fast.
LARGE: Final = 24 << 20
# So many ignored rows are named one by one; of more, their number is.
_MOST_NAMED: Final = 10_000
_MEMORY: Final = "1200MB"


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a large statement after the pairs that agree.

    ``clean`` gives number and minor units of those by currency; ``table`` holds the rows left, ``items`` the numbers of the
    items left. ``rows``, ``net``, ``moments`` and ``ignored`` are those of the whole file; ``named`` are the ignored rows'
    lines, unless they are very many.
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
    accounts: frozenset[str] = frozenset()
    named: tuple[tuple[int, str], ...] = ()


def take_clean(
    path: Path, layouts: Iterable[Layout], operation: str, *, form: FileFormat, billing: Iterable[str],
    keep: Collection[str] = (), period: tuple[int | None, int | None] = (None, None),
) -> Left:  # fmt: skip
    """Reads a large file beside a ledger's items (see ``Ledger.billing``) and takes the clean pairs out.

    ``keep`` are items that must not be taken out; rows out of the ``period`` are not. Raises Unusual; nothing is decided
    then.
    """
    import duckdb

    try:
        shape = shape_of(path, list(layouts), form)
    except NotPlain as error:
        raise Unusual(str(error)) from error
    _supported(shape.layout)
    with tempfile.TemporaryDirectory(prefix="payonce-") as folder:
        try:
            config: dict[str, str | bool | int | float | list[str]] = {
                "threads": 2, "memory_limit": _MEMORY, "temp_directory": folder,
            }  # fmt: skip
            with duckdb.connect(config=config) as base, ThreadPoolExecutor(1) as beside:
                work = _Bulk(base, shape, operation, period=period)
                # The statement is read while this thread, whose ledger it is, takes the ledger's items in.
                statement = beside.submit(work.read, path)
                with base.cursor() as ledger:
                    load_ledger(ledger, billing)
                return work.run(path, keep, statement.result())
        except (duckdb.Error, UnicodeError) as error:
            raise Unusual(str(error)) from error


def _supported(layout: Layout) -> None:
    amount = layout.amount
    odd = (layout.row_type is not None, layout.where, layout.credit, layout.rounding, layout.time_format, layout.zone,
           amount.side, amount.decimals, layout.decimal == ",", len(layout.key) > 1)  # fmt: skip
    if any(odd):
        raise Unusual("the layout needs the usual way")


class _Bulk(StatementSide):
    """One comparison in one database."""

    def run(self, path: Path, keep: Collection[str], facts: Facts) -> Left:
        """The comparison, and what is left."""
        self._leave(keep)
        found = self.all_rows(
            "select cu, count(*), sum(minor) from s where m is not null and m not in (select m from bad) group by cu"
        )
        clean: dict[str, tuple[int, int]] = {}
        for code, number, minor in found:
            # Two words may mean one currency.
            count, total = clean.get(self.learnt.currencies[code], (0, 0))
            clean[self.learnt.currencies[code]] = (count + int(number), total + int(minor))
        left = self.all_rows("select row from s where m is null or m in (select m from bad) order by row")
        items = self.all_rows(f"select n from l where {_LEFT_ITEM} order by n")
        table = self._shape.pick(path, [int(row) for (row,) in left])
        used = self._shape.rows - sum(number for _, number in facts.ignored)
        return Left(
            table, self._fixed(facts), tuple(int(n) for (n,) in items), clean, self._shape.rows, used, facts.net, facts.moments,
            facts.ignored, facts.accounts, self._named(facts),
        )  # fmt: skip

    def _named(self, facts: Facts) -> tuple[tuple[int, str], ...]:
        if sum(number for _, number in facts.ignored) > _MOST_NAMED:
            return ()
        whys = {place: why for place, why in enumerate(self.reasons) if why}
        listed = ", ".join(map(str, whys)) or "-1"
        rows = self.all_rows(f"select rowid + 1 + {self._shape.skip}, ty from every where ty in ({listed}) order by 1")
        return tuple((int(line), whys[word]) for line, word in rows)

    def _fixed(self, facts: Facts) -> Layout:
        """The layout with what the whole file has proven, which the rows that are left may not prove any more."""
        layout = self._layout
        if layout.amount.outflow is None:
            layout = replace(layout, amount=replace(layout.amount, outflow=facts.direction))
        if layout.amount.unit == "major":
            layout = replace(layout, decimal=".", thousands="")
        if facts.time_form is not None:
            layout = replace(layout, time_format=facts.time_form)
        return layout

    def _leave(self, keep: Collection[str]) -> None:
        """Which references stay: those that do not agree, and those that whatever stays names in any way."""
        base = self._base
        base.execute(
            "create table bad as select m from (select m, x, true as one from s where m is not null union all select m, x, false "
            "from l where m is not null) group by m having not (count(*) = 2 and min(one) <> max(one) and min(x) = max(x))"
        )
        base.execute("insert into bad select hparent from s where hparent is not null")
        base.execute("create table named (h uinteger)")
        for column in self.names:
            base.execute(
                f"insert into named select {column} from s where (m is null or m in (select m from bad)) and {column} is not null"
            )
        for column in LEDGER_NAMES:
            base.execute(
                f"insert into named select {column} from l where {_LEFT_ITEM} and counts and {column} is not null"
            )
        if keep:
            base.execute(f"insert into named select {short('k')} from (select unnest(?::varchar[]) as k)", [list(keep)])
        if self.all_rows("select count(*) from named")[0][0]:
            rows, items = (
                " or ".join(f"{name} in (select h from named)" for name in names)
                for names in (self.names, LEDGER_NAMES)
            )
            base.execute(
                f"insert into bad select m from s where m is not null and ({rows}) union select m from l where m is not null and ({items})"
            )


# Items that stay: those whose reference does, and those without one.
_LEFT_ITEM: Final = "(m is null or m in (select m from bad))"
