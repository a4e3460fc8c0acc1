"""Opening and making a PostgreSQL ledger: what is refused, what is set for the session, and what is read back.

A ledger is only opened where the server keeps its promises: `fsync` on, commits that are durable when they are
acknowledged, a server that may be written to, text in UTF-8. It is made in one transaction: whole or not at all.
"""

from __future__ import annotations

import uuid
from functools import cache
from importlib.resources import files
from typing import Any, Final, LiteralString, cast

import psycopg

from payonce.core.errors import LedgerError
from payonce.ledger.postgres_address import Address, unreadable
from payonce.ledger.postgres_errors import faults
from payonce.ledger.postgres_link import Link
from payonce.ledger.postgres_values import adapters_map

OLDEST: Final = 140000
_CONNECT_S: Final = 10
# A server that has vanished without a word (a host that lost power, a cut cable) is noticed within about half a minute:
# after 10 s without a word it is asked every 5 s, and what was sent must be acknowledged within 30 s.
_KEEPALIVE: Final = {
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
# For the session. Waiting for the lock is bounded as with a file. A process that stands still in the middle of a
# transaction would hold up all others: the server ends it. The plans: every writing statement is about some rows by
# their keys, and a plan that reads whole tables, made while they were small, would be kept when they are large.
_ALWAYS: Final = (("client_encoding", "UTF8"), ("jit", "off"), ("DateStyle", "ISO"), ("row_security", "off"))
_WRITER: Final = (
    ("lock_timeout", "60s"),
    ("idle_in_transaction_session_timeout", "15s"),
    ("statement_timeout", "0"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
)
# Readers scan whole tables in order, but join only a few rows, by their keys.
_READER: Final = (
    ("default_transaction_read_only", "on"),
    ("statement_timeout", "0"),
    ("lock_timeout", "60s"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
)
# "payo": taken while the schema is made or brought up to date, so that two processes do not do it at once.
_MAKING: Final = 0x7061796F


def open_link(address: Address, *, writing: bool) -> Link:
    """A connection with its settings made. Raises LedgerError where there is none, or the server cannot be used."""
    with faults(address.shown):
        connection = _connect(address)
    link = Link(connection, address.shown)
    try:
        refuse_old(link)
        names = _ALWAYS + (_WRITER if writing else _READER) + (("search_path", f'"{address.schema}", pg_temp'),)
        link.ask_all(*(("SELECT set_config($1, $2, false)", pair) for pair in names))
        if writing:
            hold_durable(link)
    except BaseException:
        link.close()
        raise
    return link


def _connect(address: Address) -> psycopg.Connection[Any]:
    try:
        said = psycopg.conninfo.conninfo_to_dict(address.conninfo)
    except psycopg.ProgrammingError:
        raise unreadable() from None
    defaults: dict[str, Any] = {**_KEEPALIVE, "connect_timeout": _CONNECT_S, "fallback_application_name": "payonce"}
    more = {name: value for name, value in defaults.items() if name not in said}
    return psycopg.Connection.connect(
        address.conninfo, autocommit=True, prepare_threshold=1, context=_Context(), **more
    )


class _Context:
    """What a new connection takes its types from."""

    adapters = adapters_map()
    connection = None


def refuse_old(link: Link) -> None:
    """Raises LedgerError for a server that is too old, or whose text is not UTF-8."""
    found = dict(
        link.ask("SELECT name, setting FROM pg_settings WHERE name IN ('server_version_num', 'server_encoding')")
    )
    if int(found["server_version_num"]) < OLDEST:
        raise LedgerError(
            f"ledger {link.place}: the server is PostgreSQL {int(found['server_version_num']) // 10000}; "
            f"payonce needs {OLDEST // 10000} or newer",
            code="postgres_too_old",
            hint="use a newer server",
        )
    if found["server_encoding"] != "UTF8":
        raise LedgerError(
            f"ledger {link.place}: the database's encoding is {found['server_encoding']}, it must be UTF8",
            code="ledger_setting",
            hint="create a database for the ledger with ENCODING 'UTF8'",
        )


def durability(link: Link) -> dict[str, str]:
    """The server's settings that decide whether what it acknowledges is kept, as they hold for this session."""
    sql = (
        "SELECT name, setting FROM pg_settings WHERE name IN "
        "('fsync', 'synchronous_commit', 'full_page_writes', 'transaction_read_only')"
    )
    return dict(link.ask(sql))


def hold_durable(link: Link) -> None:
    """Refuses a server that does not keep what it acknowledges, and pins what was found for this session.

    ``synchronous_commit = off`` loses the last transactions in a crash: an intent that is lost is a call that nobody
    knows of. ``fsync = off`` may lose anything. Raises LedgerError ``ledger_setting``, or ``ledger_read_only``.
    """
    found = durability(link)
    for name, how in (
        ("fsync", "set fsync = on for the server"),
        ("synchronous_commit", "ALTER ROLE ... SET synchronous_commit = on (or for the database or the server)"),
    ):
        if found[name] == "off":
            raise LedgerError(
                f"ledger {link.place}: the server has {name} = off, so what it confirms may be lost in a crash",
                code="ledger_setting",
                hint=f"{how}; payonce sends nothing on such a ledger",
            )
    if found["transaction_read_only"] == "on":
        raise LedgerError(
            f"ledger {link.place}: the server only reads: it is a standby, or was set so",
            code="ledger_read_only",
            hint="name the primary server; status, items, show and trail verify work here",
        )
    # Somebody may change the server's setting while this session lives: it keeps what was found.
    link.ask("SELECT set_config('synchronous_commit', $1, false)", found["synchronous_commit"])


@cache
def scripts() -> dict[int, LiteralString]:
    """All migration scripts by number, in order."""
    folder = files("payonce.ledger") / "sql" / "postgres" / "migrations"
    # The files are part of the package, so their text is as literal as if it stood here.
    read = {int(entry.name[:4]): entry.read_text("utf-8") for entry in folder.iterdir() if entry.name.endswith(".sql")}
    return cast(dict[int, LiteralString], dict(sorted(read.items())))


def schema_of(link: Link) -> int | None:
    """The number of a ledger's schema; None where there is no ledger. Raises LedgerError ``ledger_foreign`` where the
    tables are somebody else's."""
    ours = link.ask("SELECT to_regclass('meta') IS NOT NULL, to_regclass('events') IS NOT NULL")[0]
    if ours == (False, False):
        return None
    if ours == (True, True):
        found = dict(link.ask("SELECT name, value FROM meta WHERE name IN ('id', 'schema')"))
        if len(found) == 2:
            return int(found["schema"])
    raise LedgerError(
        f"ledger {link.place}: the schema holds tables that are not payonce's",
        code="ledger_foreign",
        hint="name another schema: ?schema=NAME; nothing was changed",
    )


def refuse_unusable(link: Link) -> int:
    """The number of the ledger's schema. Raises LedgerError where there is no ledger, or one of a newer payonce."""
    found = schema_of(link)
    if found is None:
        raise LedgerError(
            f"there is no ledger at {link.place}",
            code="no_ledger",
            hint="check the address, or plan a batch to make a new one",
        )
    newest = max(scripts())
    if found > newest:
        raise LedgerError(
            f"ledger {link.place} has schema {found}, this payonce knows {newest} at most",
            code="ledger_too_new",
            hint="use the payonce version that wrote it, or a later one",
        )
    return found


def migrate(link: Link, address: Address, *, create: bool) -> None:
    """Brings the schema up to date, in one transaction; makes a new ledger only where ``create`` is true and there is
    none. A crash leaves what was there. Raises LedgerError."""
    if (schema_of(link) is not None or not create) and refuse_unusable(link) == max(scripts()):
        return
    with faults(link.place):
        with link.connection.transaction():
            cursor = psycopg.ClientCursor(link.connection)
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (_MAKING, address.schema))
            found = schema_of(link)  # another process may have been faster while this one waited
            if found is None:
                _make_schema(cursor, address)
            for number, script in scripts().items():
                if number > (found or 0):
                    cursor.execute(script)
                    cursor.execute(
                        "INSERT INTO meta (name, value) VALUES ('schema', %s) "
                        "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                        (str(number),),
                    )
            if found is None:
                cursor.execute("INSERT INTO meta (name, value) VALUES ('id', %s)", (uuid.uuid4().hex,))


def _make_schema(cursor: psycopg.ClientCursor[Any], address: Address) -> None:
    """The schema itself, unless somebody with more rights has made it before."""
    if cursor.execute("SELECT to_regnamespace(%s) IS NULL", (address.schema,)).fetchone() == (True,):
        cursor.execute(psycopg.sql.SQL("CREATE SCHEMA {}").format(psycopg.sql.Identifier(address.schema)))
