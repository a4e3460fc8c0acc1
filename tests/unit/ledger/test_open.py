"""Opening a SQLite ledger: what is refused, what is set, and that nothing is ever made new over something."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from payonce.core.errors import LedgerError, UsageError
from payonce.ledger import filesystem, sqlite_open
from payonce.ledger.connect import connect
from payonce.ledger.merkle import Head
from payonce.ledger.migrate import newest
from payonce.ledger.sqlite_reads import SqliteReads
from tests.unit.ledger.ledgers import BATCH, begin, commit, intent

_NON_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")


def code_of(url: str, *, create: bool = False) -> str:
    """The code of the error that opening raises."""
    with pytest.raises((LedgerError, UsageError)) as error:
        connect(url, create=create)
    return error.value.code


@pytest.mark.parametrize(
    "url", ["payonce.db", "mysql://x", "sqlite:", "sqlite::memory:", "sqlite:a.db?mode=memory", "postgres:x", ""]
)
def test_addresses_that_name_no_store_are_refused(url: str) -> None:
    """With an example of one that does."""
    with pytest.raises(UsageError) as error:
        connect(url, create=True)
    assert error.value.code == "bad_ledger_url" and "sqlite:payonce.db" in error.value.hint


def test_a_password_in_an_address_is_not_shown() -> None:
    """Errors never show a secret."""
    with pytest.raises(UsageError) as error:
        connect("mysql://user:hunter2@host/db", create=True)
    assert "hunter2" not in str(error.value)


def test_a_missing_ledger_is_named_and_not_made(url: str, tmp_path: Path) -> None:
    """Opening without ``create`` leaves nothing behind."""
    with pytest.raises(LedgerError) as error:
        connect(url, create=False)
    assert error.value.code == "no_ledger" and str(tmp_path / "payonce.db") in error.value.message
    assert not list(tmp_path.glob("payonce*"))


def test_the_folder_must_exist(tmp_path: Path) -> None:
    """A mistyped folder is not made."""
    assert code_of(f"sqlite:{tmp_path / 'no' / 'payonce.db'}", create=True) == "no_ledger_folder"


@pytest.mark.parametrize(
    "content, code", [(b"", "ledger_empty"), (b"id,amount\n1,2\n" * 90, "ledger_foreign"), (b"SQL", "ledger_foreign")]
)
def test_an_existing_file_is_never_made_new(url: str, tmp_path: Path, content: bytes, code: str) -> None:
    """Neither an empty file nor another kind of file is touched, with ``create`` or without."""
    path = tmp_path / "payonce.db"
    path.write_bytes(content)
    assert code_of(url, create=True) == code
    assert code_of(url) == code
    assert path.read_bytes() == content


def test_another_programs_database_is_foreign(url: str, tmp_path: Path) -> None:
    """The application id in the header says whose it is."""
    other = sqlite3.connect(tmp_path / "payonce.db")
    other.execute("CREATE TABLE t (x)")
    other.close()
    assert code_of(url, create=True) == "ledger_foreign"


def test_a_damaged_ledger_is_refused(url: str, tmp_path: Path) -> None:
    """Garbage in the middle of the file is found at open, before anything is sent."""
    ledger = connect(url, create=True)
    begin(ledger, 2000)
    ledger.close()
    path = tmp_path / "payonce.db"
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 4096] = os.urandom(4096)
    path.write_bytes(data)
    assert code_of(url) == "ledger_corrupt"


def test_a_newer_schema_is_refused(url: str, tmp_path: Path) -> None:
    """A ledger that a later payonce has written is not guessed at."""
    connect(url, create=True).close()
    database = sqlite3.connect(tmp_path / "payonce.db")
    database.execute(f"PRAGMA user_version = {newest() + 1}")
    database.close()
    assert code_of(url) == "ledger_too_new"


def test_durability_is_set_and_read_back(url: str) -> None:
    """WAL with an fsync for each commit; a setting that does not take is an error."""
    ledger = connect(url, create=True)
    database = ledger._sqlite._db  # type: ignore[attr-defined]
    assert database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert database.execute("PRAGMA synchronous").fetchone()[0] == 2
    with pytest.raises(LedgerError) as error:
        sqlite_open.set_up(database, Path("x"), (("synchronous", "OFF", 2),))
    assert error.value.code == "ledger_setting"
    ledger.close()


@_NON_ROOT
def test_a_read_only_file_says_so(url: str, tmp_path: Path) -> None:
    """A clear code instead of a failure at the first write."""
    connect(url, create=True).close()
    (tmp_path / "payonce.db").chmod(0o444)
    assert code_of(url) == "ledger_read_only"


def test_reading_only_refuses_every_write(url: str) -> None:
    """A ledger opened for reading shows everything and changes nothing."""
    ledger = connect(url, create=True)
    worker = begin(ledger, 2)
    ledger.close()
    reading = connect(url, create=False, read_only=True)
    assert reading.status(BATCH).batch.items == 2
    with pytest.raises(LedgerError) as error:
        reading.leave(worker)
    assert error.value.code == "ledger_read_only"
    reading.close()


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs"])
def test_network_file_systems_are_refused(url: str, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At creation and at open; nothing is left behind."""
    local = connect(url, create=True)
    local.close()
    table = tmp_path / "mountinfo"
    table.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / {tmp_path} rw shared:1 - {kind} server:/x rw\n")
    monkeypatch.setattr(filesystem, "MOUNTINFO", table)
    assert code_of(url) == "network_file_system"
    assert code_of(f"sqlite:{tmp_path / 'new.db'}", create=True) == "network_file_system"
    assert not (tmp_path / "new.db").exists()


def test_the_innermost_mount_counts(tmp_path: Path) -> None:
    """Blanks in mount points are escaped; a later mount hides an earlier one."""
    table = (
        "1 0 8:1 / / rw - nfs4 server:/ rw\n"
        "2 1 8:2 / /srv rw - ext4 /dev/a rw\n"
        "3 2 8:3 / /srv/my\\040disk rw - xfs /dev/b rw\n"
        "4 2 8:4 / /srv/my\\040disk rw - btrfs /dev/c rw\n"
    )
    kinds = {p: filesystem.type_of(Path(p), mountinfo=table) for p in ("/home", "/srv/x", "/srv/my disk/p", "/srvx")}
    assert kinds == {"/home": "nfs4", "/srv/x": "ext4", "/srv/my disk/p": "btrfs", "/srvx": "nfs4"}


@pytest.mark.parametrize("what", ["replaced", "removed", "journal removed"])
def test_a_file_replaced_under_the_process_is_noticed(url: str, tmp_path: Path, what: str) -> None:
    """Before the next commit: what would be written then is lost."""
    path = tmp_path / "payonce.db"
    ledger = connect(url, create=True)
    worker = begin(ledger, 3)
    match what:
        case "replaced":
            (tmp_path / "copy.db").write_bytes(path.read_bytes())
            (tmp_path / "copy.db").replace(path)
        case "removed":
            path.unlink()
        case _:
            path.with_name("payonce.db-wal").unlink()
    with pytest.raises(LedgerError) as error:
        ledger.write(worker, [intent(1)])
    assert error.value.code == "ledger_replaced"


def test_two_processes_may_make_the_ledger_at_once(url: str, tmp_path: Path) -> None:
    """One file comes up, both have it, nothing is left lying about."""
    ids: list[str] = []

    def make() -> None:
        ledger = connect(url, create=True)
        ids.append(ledger.info().id)
        ledger.close()

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 6 and len(set(ids)) == 1
    assert not list(tmp_path.glob("*.new-*"))


def test_opening_a_ledger_twice_does_not_free_its_locks(url: str) -> None:
    """POSIX drops a process's locks on a file when any of its descriptors is closed: the file is never opened by hand."""
    first = connect(url, create=True)
    worker = begin(first, 2)
    second = connect(url, create=False)
    second.close()
    probe = (
        "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0);"
        "print(d.execute('PRAGMA journal_mode = DELETE').fetchone()[0])"
    )
    path = url.removeprefix("sqlite:")
    done = subprocess.run([sys.executable, "-c", probe, path], capture_output=True, text=True, check=False)
    assert "database is locked" in done.stderr  # another process cannot take the journal away
    first.write(worker, [intent(1)])
    first.write(worker, [commit(1)])
    assert first.check() == ()
    first.close()


def test_a_lock_that_is_held_too_long_is_an_error(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait for another process is bounded and ends in a code of its own."""
    monkeypatch.setattr(sqlite_open, "BUSY_TIMEOUT_S", 0.05)
    ledger = connect(url, create=True)
    worker = begin(ledger, 2)
    other = sqlite3.connect(url.removeprefix("sqlite:"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError) as error:
        ledger.write(worker, [intent(1)])
    assert error.value.code == "ledger_locked"
    other.execute("ROLLBACK")
    other.close()
    assert len(ledger.write(worker, [intent(1)])) == 1
    ledger.close()


def test_a_ledger_that_has_lost_its_name_is_refused(tmp_path: Path) -> None:
    """Whoever removed it: a fault of the ledger with what to do, for reading and for writing, never an internal error."""
    url = f"sqlite:{tmp_path / 'l.db'}"
    connect(url, create=True).close()
    with sqlite3.connect(tmp_path / "l.db") as db:
        db.execute("DELETE FROM meta")
    db.close()
    for read_only in (True, False):
        with pytest.raises(LedgerError) as error:
            connect(url, create=False, read_only=read_only)
        assert error.value.code == "ledger_corrupt"


def test_a_ledger_that_another_process_writes_just_now_opens(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that becomes durable while the ledger is opened is no damage of its trail."""
    first = connect(url, create=True)
    worker, read, written = begin(first, 2), SqliteReads.head, list[int]()

    def head(reads: SqliteReads) -> Head:
        found = read(reads)
        if not written:
            written.append(1)
            first.write(worker, [intent(1)])
        return found

    monkeypatch.setattr(SqliteReads, "head", head)
    connect(url, create=False).close()
    assert written
    first.close()
