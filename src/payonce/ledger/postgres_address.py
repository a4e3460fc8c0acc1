"""The address of a PostgreSQL ledger: what libpq is told, which schema holds the tables, and what may be shown of it.

A password comes from the address, the environment (``PGPASSWORD``), a service file or ``~/.pgpass``; none of these is
ever put into an error, an event or a screen: everything that speaks of the ledger says ``shown``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from payonce.core.errors import UsageError

SCHEMES: Final = ("postgresql", "postgres")
DEFAULT_SCHEMA: Final = "payonce"
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_EXAMPLE: Final = "postgresql://user@host:5432/database, with ?schema=NAME for other tables than those in payonce"


@dataclass(frozen=True, slots=True)
class Address:
    """``conninfo`` goes to libpq and may hold a password, so it is no part of a repr; ``shown`` never does."""

    conninfo: str = field(repr=False)
    schema: str
    shown: str


def is_postgres(url: str) -> bool:
    """Whether an address is one of a PostgreSQL server."""
    return url.partition("://")[0].lower() in SCHEMES and "://" in url


def parse(url: str) -> Address:
    """The parts of an address. Raises UsageError ``bad_ledger_url``, which does not repeat the address."""
    rest = url.partition("://")[2]
    head, mark, query = rest.partition("?")
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        shown = _shown(head, dict(pairs))
    except ValueError:
        raise _bad("it cannot be read: is something in it that has to be percent-encoded?") from None
    if "#" in rest or (mark and not query):
        raise _bad("it cannot be read: is something in it that has to be percent-encoded?")
    schemas = [value for name, value in pairs if name == "schema"]
    schema = schemas[-1] if schemas else DEFAULT_SCHEMA
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
        raise _bad(f"the schema {schema!r} is no plain name (small letters, digits, underscores)")
    kept = [(name, value) for name, value in pairs if name != "schema"]
    more = f"?{urlencode(kept, quote_via=quote)}" if kept else ""
    return Address(f"postgresql://{head}{more}", schema, _with_schema(shown, schema))


def _shown(head: str, query: dict[str, str]) -> str:
    """Server and database alone: no user, no password, no options."""
    parts = urlsplit(f"postgresql://{head}")
    database = unquote(query.get("dbname") or parts.path.lstrip("/"))
    place = query.get("host") or parts.netloc.rpartition("@")[2]
    if query.get("port"):
        place += f":{query['port']}"
    return f"postgresql://{unquote(place)}/{database}"


def _with_schema(shown: str, schema: str) -> str:
    return shown if schema == DEFAULT_SCHEMA else f"{shown}?schema={schema}"


def unreadable() -> UsageError:
    """The error for an address that libpq does not take; its own words may quote a password, so they are not told."""
    return _bad("it cannot be read, or names a setting that the server's library does not know")


def _bad(why: str) -> UsageError:
    return UsageError(f"the ledger's address is wrong: {why}", code="bad_ledger_url", hint=f"write {_EXAMPLE}")
