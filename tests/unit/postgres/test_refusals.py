"""What a PostgreSQL ledger refuses: servers that do not keep what they confirm, changes of events, copies, strangers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import orjson
import psycopg
import pytest

from payonce.core.errors import LedgerError, LedgerPlaceError, UsageError
from payonce.ledger.connect import accept_place, connect
from payonce.ledger.postgres_check import look
from payonce.ledger.protocol import Ledger
from tests.postgres import Server, empty_ledger, new_schema
from tests.unit.ledger.ledgers import BATCH, OPS, begin, commit, intent

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "ledger-postgres.md"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Marks in the test's own folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def url(postgres: Server) -> str:
    """An empty ledger."""
    return postgres.url(empty_ledger(postgres))


@pytest.fixture
def database(postgres: Server, url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """The superuser, in the ledger's schema."""
    with psycopg.connect(postgres.dsn, autocommit=True) as found:
        found.execute(f"SET search_path = {url.rpartition('=')[2]}")
        yield found


def code_of(url: str, *, create: bool = False, read_only: bool = False) -> str:
    """The code of the error that opening raises."""
    with pytest.raises((LedgerError, UsageError)) as error:
        connect(url, create=create, read_only=read_only)
    return error.value.code


def used(url: str) -> Ledger:
    """A ledger with one committed item, one pending and one planned."""
    ledger = connect(url, create=True)
    worker = begin(ledger, 3)
    ledger.write(worker, [intent(1), intent(2), commit(1)])
    return ledger


# durability


def test_a_server_that_confirms_before_it_keeps_is_refused(url: str) -> None:
    """`synchronous_commit = off`, wherever it was set; what is set otherwise is held for the session."""
    connect(url, create=True).close()
    asked = quote("-c synchronous_commit=off")
    assert code_of(f"{url}&options={asked}") == "ledger_setting"
    assert "synchronous_commit is off" in look(f"{url}&options={asked}").faults[0]
    ledger = connect(f"{url}&options={quote('-c synchronous_commit=local')}", create=False)
    ledger.close()


def test_a_server_that_only_reads_is_refused_for_writing(url: str) -> None:
    """As a standby is; reading works there."""
    connect(url, create=True).close()
    standby = f"{url}&options={quote('-c default_transaction_read_only=on')}"
    assert code_of(standby) == "ledger_read_only"
    reading = connect(standby, create=False, read_only=True)
    assert reading.info().events == 1
    reading.close()


# append-only


CHANGES = [
    "UPDATE events SET body = '{}' WHERE seq = 2",
    "DELETE FROM events",
    "TRUNCATE events",
    "INSERT INTO events (seq, body, mark) VALUES (2, '{}', 0) ON CONFLICT (seq) DO UPDATE SET body = '{}'",
    "UPDATE nodes SET hash = ''",
    "TRUNCATE payloads",
]


def test_events_cannot_be_changed(postgres: Server, database: psycopg.Connection[tuple[object, ...]]) -> None:
    """The role that made the ledger lacks the right; when it grants it to itself, the triggers refuse, and they refuse a
    superuser in replica mode too."""
    database.execute("CREATE ROLE keeper LOGIN; GRANT CREATE ON DATABASE postgres TO keeper")
    schema = new_schema()
    mine = postgres.url(schema).replace("postgres@", "keeper@")
    used(mine).close()
    try:
        with psycopg.connect(postgres.dsn.replace("postgres@", "keeper@"), autocommit=True) as keeper:
            keeper.execute(f"SET search_path = {schema}")
            for statement in CHANGES:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    keeper.execute(statement)
            keeper.execute("GRANT ALL ON events, nodes, payloads TO keeper")
            for statement in CHANGES:
                with pytest.raises(psycopg.Error, match="append-only"):
                    keeper.execute(statement)
        database.execute(f"SET search_path = {schema}; SET session_replication_role = replica")
        for statement in CHANGES:
            with pytest.raises(psycopg.Error, match="append-only"):
                database.execute(statement)
    finally:
        database.execute("DROP OWNED BY keeper CASCADE; DROP ROLE keeper")


def test_a_check_finds_what_someone_changed(url: str, database: psycopg.Connection[tuple[object, ...]]) -> None:
    """Around the triggers: the doctor sees that one is missing, the check that an event was changed."""
    ledger = used(url)
    assert ledger.check() == ()
    assert look(url).faults == ()
    database.execute("ALTER TABLE events DISABLE TRIGGER events_are_append_only")
    assert "events_are_append_only" in look(url).faults[0]
    database.execute("UPDATE events SET body = replace(body, 'item-1', 'item-2')")
    assert ledger.check() == ("the trail's events do not hash to its head",)
    ledger.close()


# rights


def test_the_rights_on_the_page_are_enough_and_no_more(
    postgres: Server, url: str, database: psycopg.Connection[tuple[object, ...]]
) -> None:
    """A role with the grants of docs/reference/ledger-postgres.md runs batches; without one of them doctor says which."""
    connect(url, create=True).close()
    schema = url.rpartition("=")[2]
    grants = re.search(r"```sql\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    assert grants is not None
    database.execute("DROP ROLE IF EXISTS worker; CREATE ROLE worker LOGIN")
    database.execute(grants[1].replace("SCHEMA payonce", f"SCHEMA {schema}").replace("payonce.", f"{schema}."))
    mine = url.replace("postgres@", "worker@")
    try:
        assert look(mine).faults == ()
        ledger = used(mine)
        assert ledger.check() == ()
        ledger.close()
        database.execute("REVOKE DELETE ON intents FROM worker")
        assert "DELETE on intents" in look(mine).faults[0]
        database.execute("REVOKE ALL ON meta FROM worker")
        assert code_of(mine) == "ledger_denied"
    finally:
        database.execute("DROP OWNED BY worker; DROP ROLE worker")


# addresses and passwords


def test_a_password_is_never_told(url: str) -> None:
    """Not by errors, not by what the ledger says of itself, not by representations."""
    secret = url.replace("postgres@", "postgres:hunter2@")
    ledger = connect(secret, create=True)
    assert "hunter2" not in f"{ledger.info()} {ledger!r}" and "postgres@" not in ledger.info().url
    ledger.close()
    for wrong in (
        "postgresql://u:hunter2@127.0.0.1:1/db",
        "postgresql://u:hunter2@127.0.0.1:1/db?schema=Not-Plain",
        "postgresql://u:hunter%zz2@127.0.0.1:1/db",
        "postgresql://u:hunter2@127.0.0.1:1/db?nonsense=hunter2",
        "postgresql://127.0.0.1:1/db?password=hunter2",
        "postgresql://u:hunter2#x@127.0.0.1:1/db",
        secret.replace("/postgres?", "/no_such_database?"),
    ):
        with pytest.raises((LedgerError, UsageError)) as error:
            connect(wrong, create=True)
        cause: BaseException | None = error.value
        assert "hunter" not in str(cause), wrong


def test_servers_and_schemas_that_are_not_there(postgres: Server, database: psycopg.Connection[object]) -> None:
    """Each has its own code; nothing is made without being asked for."""
    fresh = postgres.url()
    assert code_of(fresh) == "no_ledger"
    assert code_of(fresh, read_only=True) == "no_ledger"
    assert code_of("postgresql://127.0.0.1:1/db") == "ledger_unreachable"
    assert code_of(fresh.replace("/postgres?", "/no_such_database?"), create=True) == "no_ledger"
    taken = new_schema()
    database.execute(f"CREATE SCHEMA {taken}; CREATE TABLE {taken}.meta (x integer)")
    assert code_of(postgres.url(taken), create=True) == "ledger_foreign"
    database.execute(f"DROP SCHEMA {taken} CASCADE")


def test_a_newer_schema_is_refused(url: str, database: psycopg.Connection[tuple[object, ...]]) -> None:
    """A later payonce has written the ledger."""
    connect(url, create=True).close()
    database.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    try:
        assert code_of(url) == "ledger_too_new"
    finally:
        database.execute("UPDATE meta SET value = '1' WHERE name = 'schema'")


# place


def test_a_server_that_lost_transactions_is_noticed(
    url: str, database: psycopg.Connection[tuple[object, ...]], state: Path
) -> None:
    """A restored backup, or a standby that took over too early: nothing is written until a person accepts it."""
    used(url).close()
    (mark,) = (state / "payonce" / "ledgers").iterdir()
    ahead = orjson.loads(mark.read_bytes())
    mark.write_bytes(orjson.dumps({**ahead, "size": ahead["size"] + 5}))
    assert code_of(url) == "ledger_rolled_back"
    connect(url, create=False, read_only=True).close()
    accept_place(url, actor=OPS, reason="restored and reconciled")
    ledger = connect(url, create=False)
    assert orjson.loads(ledger.events()[-1].body)["type"] == "ledger_accepted"
    ledger.close()


def test_a_dump_loaded_elsewhere_is_noticed(url: str, database: psycopg.Connection[tuple[object, ...]]) -> None:
    """Its recorded home is another server or database."""
    used(url).close()
    database.execute("UPDATE meta SET value = 'another/1' WHERE name = 'home'")
    with pytest.raises(LedgerPlaceError) as error:
        connect(url, create=False)
    assert error.value.code == "ledger_copied"
    accept_place(url, actor=OPS, reason="the other one is switched off")
    connect(url, create=False).close()


def test_a_ledger_that_is_gone_is_not_replaced(
    postgres: Server, database: psycopg.Connection[tuple[object, ...]], state: Path
) -> None:
    """Its mark says that one was there; a new one would pay everything again."""
    url = postgres.url()
    used(url).close()
    database.execute(f"DROP SCHEMA {url.rpartition('=')[2]} CASCADE")
    assert code_of(url, create=True) == "ledger_lost"
    (mark,) = (state / "payonce" / "ledgers").iterdir()
    mark.unlink()
    connect(url, create=True).close()


def test_a_providers_words_are_kept_whatever_they_hold(url: str) -> None:
    """A text with U+0000, which PostgreSQL cannot hold as it is, and with the sign that stands for it."""
    from payonce.core.commands import Change
    from payonce.core.states import ItemEvent

    words = "a\x00b\x1a0\x1ac"
    ledger = connect(url, create=True)
    worker = begin(ledger, 2)
    ledger.write(worker, [intent(1), Change(1, ItemEvent.COMMIT, reference=words)])
    ledger.write(worker, [intent(2), Change(2, ItemEvent.UNRESOLVED, code="odd", message=words)])
    (first, second) = ledger.items(BATCH).items
    assert first.reference == words and ledger.open_intents(BATCH, [2])[0].message == words
    assert ledger.claimed_references(BATCH, [words, "other"]) == {words}
    assert words in "".join(ledger.billing(BATCH)) and ledger.check() == () and second.id == "item-2"
    ledger.close()
