"""A copied ledger into PostgreSQL: the schema is made first and stays empty, then everything comes in one transaction."""

from __future__ import annotations

from pathlib import Path

from payonce.core.errors import PayonceError
from payonce.ledger.copy_targets import Look, Origin, taken
from payonce.ledger.copying import Fill
from payonce.ledger.place import MOVED_TO, state_folder
from payonce.ledger.postgres import open_writer
from payonce.ledger.postgres_address import parse
from payonce.ledger.postgres_clock import ServerClock
from payonce.ledger.postgres_place import HOME, home_of
from payonce.ledger.postgres_reads import LEDGER_ID
from payonce.ledger.postgres_tables import PostgresTables


def build_postgres(url: str, origin: Origin, *, fill: Fill, look: Look, marks: Path | None = None) -> None:
    """Fills an empty ledger at an address, made where there is none. Raises UsageError ``target_exists`` where one is
    in use. A failure leaves an empty ledger at most; one that ``look`` refuses is closed for good."""
    address = parse(url)
    link = open_writer(address, create=True, folder=marks or state_folder())
    try:
        tables = PostgresTables(link, clock=ServerClock(), after=lambda _: None)
        if tables.begin().size:
            tables.rollback()
            raise taken(f"a ledger at {address.shown}")
        try:
            tables.save_meta(LEDGER_ID, origin.ledger)
            tables.save_meta(HOME, home_of(link) or "")
            fill(tables)
            tables.commit()
        except BaseException:
            tables.rollback()
            raise
        try:
            look(url)
        except PayonceError:
            tables.begin()
            tables.save_meta(MOVED_TO, "where it came from, since its copy did not verify")
            tables.commit()
            raise
    finally:
        link.close()
