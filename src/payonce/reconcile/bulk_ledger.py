# ruff: noqa: S608 (expressions are our own)
"""The ledger's side of a large comparison: its items in blocks of text, taken into a database as numbers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

from payonce.reconcile.bulk_query import PAIR, short
from payonce.reconcile.bulk_sql import Unusual

if TYPE_CHECKING:
    import duckdb

LEDGER_NAMES: Final = ("hid", "htarget", "href")
# So many pieces, or lines that come one by one, go into one statement: about a hundred thousand items.
_PIECES: Final = 100
_LINES: Final = 100_000
_BY_COLUMN: Final = "\x1d"
_COLUMNS: Final = ("n", "id", "ref", "state", "settlement", "minor", "code", "target")


def load_ledger(base: duckdb.DuckDBPyConnection, billing: Iterable[str]) -> None:
    """Fills the table ``l`` with a batch's items, see ``Ledger.billing``: ``m`` and ``x`` as in the statement's ``s``.

    ``counts`` says that something was or may have been executed. Raises Unusual where an id holds what separates them.
    """
    base.execute(
        "create table l (n integer, m ubigint, x ubigint, hid uinteger, htarget uinteger, href uinteger, counts boolean)"
    )
    pieces, items = iter(billing), 0
    while first := next(pieces, ""):
        one_by_one = not first.startswith(_BY_COLUMN) and first.count("\n") == 1
        chunk = [first, *islice(pieces, _LINES if one_by_one else _PIECES)]
        columns = [_columns(piece) for piece in (["".join(chunk)] if one_by_one else chunk)]
        items += sum(column[0].count("\n") + 1 for column in columns)
        base.execute(_TAKE, [list(column) for column in zip(*columns, strict=True)])
    found = base.execute("select count(*) from l").fetchone()
    assert found is not None and found[0] == items, "each item is taken in"


def _columns(piece: str) -> list[str]:
    """A piece by column, each column's values a line."""
    if piece.startswith(_BY_COLUMN):
        columns = piece[1:].split("\x1f")
    else:
        rows = [line.split("\x1f") for line in piece.removesuffix("\n").split("\n")]
        if any(len(row) != len(_COLUMNS) + 1 or row[-1] != "." for row in rows):
            raise Unusual("ids with control characters")
        columns = ["\n".join(column) for column in zip(*rows, strict=True)][:-1]
    if len(columns) != len(_COLUMNS) or len({column.count("\n") for column in columns}) != 1:
        raise Unusual("ids with control characters")
    return columns


_LISTS: Final = ", ".join(f"unnest(?::varchar[]) as {name}" for name in _COLUMNS)
_SPLIT: Final = ", ".join(f"string_split({name}, '\n') as {name}" for name in _COLUMNS)
_EACH: Final = ", ".join(f"unnest({name}) as {name}" for name in _COLUMNS)
_TAKE: Final = (
    "insert into l select cast(n as integer), case when ref <> '' then hash(ref) end, case when state = 'committed' and "
    f"settlement not in ('failed', 'returned') then {PAIR} else 1 end, {short('id')}, {short('target')}, {short('ref')}, "
    "state in ('committed', 'unknown', 'pending') from (select * replace (try_cast(minor as bigint) as minor) from "
    f"(select {_EACH} from (select {_SPLIT} from (select {_LISTS}))))"
)
