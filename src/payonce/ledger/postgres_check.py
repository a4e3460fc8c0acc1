"""What `payonce doctor` looks at on a server: settings that decide about durability, this role's rights, the triggers that
keep events as they are. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from payonce.ledger.postgres_address import parse
from payonce.ledger.postgres_link import Link
from payonce.ledger.postgres_open import durability, open_link, schema_of

# What a worker does to each table; what nobody may do to events.
_NEEDED: Final = {
    "head": "UPDATE",
    "events": "INSERT",
    "nodes": "INSERT",
    "payloads": "INSERT",
    "batches": "INSERT, UPDATE",
    "tallies": "INSERT, UPDATE",
    "items": "INSERT, UPDATE",
    "intents": "INSERT, UPDATE, DELETE",
    "workers": "INSERT, UPDATE",
    "outputs": "INSERT, UPDATE",
    "findings": "INSERT",
}
_GUARDS: Final = {
    "events_are_append_only": "events",
    "nodes_are_append_only": "nodes",
    "payloads_are_only_erased": "payloads",
    "payloads_are_never_removed": "payloads",
}


@dataclass(frozen=True, slots=True)
class Server:
    """What was found: sentences, and the faults among them with what to do about the first."""

    facts: tuple[str, ...]
    faults: tuple[str, ...]
    hint: str | None
    has_ledger: bool


def look(url: str) -> Server:
    """Looks at the server of a ledger. Raises LedgerError where it cannot be reached or used at all."""
    link = open_link(parse(url), writing=False)
    try:
        facts, faults = list(_facts(link)), list(_durability(link))
        exists = schema_of(link) is not None
        if exists:
            faults += _guards(link)
            faults += _rights(link)
        hint = faults[0][1] if faults else None
        return Server(tuple(facts), tuple(text for text, _ in faults), hint, exists)
    finally:
        link.close()


def _facts(link: Link) -> Iterator[str]:
    version, role, superuser, standby = link.ask(
        "SELECT current_setting('server_version'), current_user, rolsuper, pg_is_in_recovery() "
        "FROM pg_roles WHERE rolname = current_user"
    )[0]
    found = durability(link)
    yield f"PostgreSQL {version} at {link.place}"
    yield f"synchronous_commit {found['synchronous_commit']}, fsync {found['fsync']}"
    if found["full_page_writes"] == "off":
        yield "full_page_writes off: safe only on a file system that never tears a page"
    if superuser:
        yield f"role {role} is a superuser: no right binds it, only the triggers do"
    if standby:
        yield "a standby: it can be read, not written to"


def _durability(link: Link) -> Iterator[tuple[str, str]]:
    found = durability(link)
    for name in ("fsync", "synchronous_commit"):
        if found[name] == "off":
            yield f"{name} is off: what the server confirms may be lost in a crash", f"set {name} = on"


def _guards(link: Link) -> Iterator[tuple[str, str]]:
    sql = (
        "SELECT tgname FROM pg_trigger WHERE tgenabled = 'A' AND tgrelid IN "
        "(to_regclass('events'), to_regclass('nodes'), to_regclass('payloads'))"
    )
    there = {name for (name,) in link.ask(sql)}
    for name, table in _GUARDS.items():
        if name not in there:
            yield (
                f"the trigger {name} is missing or switched off: rows of {table} can be changed",
                "find out who did that, run payonce trail verify, then restore the trigger from the schema's script",
            )


def _rights(link: Link) -> Iterator[tuple[str, str]]:
    asked = [(table, right) for table, rights in _NEEDED.items() for right in rights.split(", ")]
    answers = link.ask_all(*(("SELECT has_table_privilege($1::text, $2)", pair) for pair in asked))
    missing = [f"{right} on {table}" for (table, right), ((has,),) in zip(asked, answers, strict=True) if not has]
    if missing:
        yield (
            f"this role may not run batches: it lacks {', '.join(missing)}",
            "grant it (docs/reference/ledger-postgres.md)",
        )
