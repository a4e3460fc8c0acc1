"""A ledger knows its place: restored, copied, moved and claimed ledgers, each done for real with files."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from pathlib import Path

import orjson
import pytest

from payonce.core.commands import Landed
from payonce.core.errors import LedgerError, LedgerPlaceError, UsageError
from payonce.core.model import SECOND_US, Actor
from payonce.ledger.actors import this_actor, wall_clock
from payonce.ledger.connect import accept_place, connect
from payonce.ledger.protocol import Ledger
from tests.unit.ledger.ledgers import BATCH, OPS, begin, intent


def used(url: str, *, items: int = 3) -> None:
    """A ledger with one batch, its first item intended, closed."""
    ledger = connect(url, create=True)
    worker = begin(ledger, items, lease_s=0)
    ledger.renew(worker, lease_us=SECOND_US)
    assert ledger.write(worker, [intent(1)]) == (Landed.LANDED,)
    ledger.leave(worker)
    ledger.close()


def goes_on(url: str) -> None:
    """One more worker comes and goes, so that the trail grows."""
    ledger = connect(url, create=False)
    ledger.leave(ledger.join(BATCH, actor=OPS, lease_us=SECOND_US))
    ledger.close()


def types(ledger: Ledger) -> list[str]:
    return [orjson.loads(event.body)["type"] for event in ledger.events()]


def refused(url: str) -> str:
    """The code under which opening for writing is refused; reading still works."""
    with pytest.raises(LedgerPlaceError) as error:
        connect(url, create=False)
    reading = connect(url, create=False, read_only=True)
    assert reading.status(BATCH).batch.items == 3
    reading.close()
    return error.value.code


def test_a_ledger_that_stays_where_it_is_opens_again(url: str) -> None:
    """Nothing is noted, nothing is refused."""
    used(url)
    before = connect(url, create=False)
    events = before.info().events
    before.close()
    after = connect(url, create=False)
    assert after.info().events == events
    after.close()


def test_an_older_copy_put_in_its_place_is_noticed(url: str, tmp_path: Path) -> None:
    """Restored from a backup: the trail does not reach what was durable."""
    path = tmp_path / "payonce.db"
    used(url)
    shutil.copy(path, tmp_path / "backup.db")
    goes_on(url)
    shutil.copy(tmp_path / "backup.db", path)
    assert refused(url) == "ledger_rolled_back"


@pytest.mark.parametrize("kept", ["beside", "state"])
def test_one_mark_is_enough(url: str, tmp_path: Path, state_home: Path, kept: str) -> None:
    """Each of the two marks alone shows a restored ledger; a broken one counts as none."""
    path = tmp_path / "payonce.db"
    used(url)
    shutil.copy(path, tmp_path / "backup.db")
    goes_on(url)
    shutil.copy(tmp_path / "backup.db", path)
    if kept == "state":
        path.with_name("payonce.db.head").write_text("{torn")
    else:
        shutil.rmtree(state_home)
    assert refused(url) == "ledger_rolled_back"


def test_another_history_of_the_same_length_is_noticed(url: str, tmp_path: Path) -> None:
    """A restored ledger that went on elsewhere has as many events, but not the same ones."""
    path = tmp_path / "payonce.db"
    used(url)
    shutil.copy(path, tmp_path / "fork.db")
    marks = [path.with_name("payonce.db.head"), *(tmp_path / "state" / "payonce" / "ledgers").iterdir()]
    kept = [mark.read_bytes() for mark in marks]
    goes_on(url)
    later = [mark.read_bytes() for mark in marks]
    shutil.copy(tmp_path / "fork.db", path)
    for mark, content in zip(marks, kept, strict=True):
        mark.write_bytes(content)
    goes_on(url)
    for mark, content in zip(marks, later, strict=True):
        mark.write_bytes(content)
    assert refused(url) == "ledger_rolled_back"


def test_a_copy_beside_the_living_original_is_noticed(url: str, tmp_path: Path) -> None:
    """Copied and run from another path while the original is still there."""
    used(url)
    (tmp_path / "other").mkdir()
    shutil.copy(tmp_path / "payonce.db", tmp_path / "other" / "payonce.db")
    assert refused(f"sqlite:{tmp_path / 'other' / 'payonce.db'}") == "ledger_copied"
    goes_on(url)


def test_a_copy_without_its_journal_is_a_rollback(url: str, tmp_path: Path) -> None:
    """After a kill part of the ledger is in the WAL; whoever copies the .db alone has an older ledger."""
    path = tmp_path / "payonce.db"
    used(url)
    open_still = connect(url, create=False)
    open_still.join(BATCH, actor=OPS, lease_us=1)
    assert path.with_name("payonce.db-wal").stat().st_size > 0
    (tmp_path / "copy").mkdir()
    shutil.copy(path, tmp_path / "copy" / "payonce.db")
    open_still.close()
    path.unlink()
    assert refused(f"sqlite:{tmp_path / 'copy' / 'payonce.db'}") == "ledger_rolled_back"


def test_a_move_is_noted_and_goes_on(url: str, tmp_path: Path) -> None:
    """The old path is gone: the same ledger at another place."""
    used(url)
    (tmp_path / "new").mkdir()
    moved = tmp_path / "new" / "ledger.db"
    (tmp_path / "payonce.db").rename(moved)
    ledger = connect(f"sqlite:{moved}", create=False)
    assert types(ledger)[-1] == "note"
    assert orjson.loads(ledger.events()[-1].body)["code"] == "ledger_moved"
    ledger.close()
    again = connect(f"sqlite:{moved}", create=False)
    assert types(again).count("note") == 1
    again.close()


def test_another_ledger_at_the_old_path_is_no_original(url: str, tmp_path: Path) -> None:
    """A new ledger made where this one was has another identity: this one has moved. It is made only once a person
    has taken the mark away that says that a ledger was here."""
    used(url)
    (tmp_path / "payonce.db").rename(tmp_path / "moved.db")
    with pytest.raises(LedgerPlaceError) as lost:
        connect(url, create=True)
    assert lost.value.code == "ledger_lost"
    (tmp_path / "payonce.db.head").unlink()
    connect(url, create=True).close()
    ledger = connect(f"sqlite:{tmp_path / 'moved.db'}", create=False)
    assert types(ledger)[-1] == "note"
    ledger.close()


def test_a_live_worker_of_another_host_claims_the_ledger(url: str) -> None:
    """Until its lease is over, by the ledger's clock."""
    ledger = connect(url, create=True)
    begin(ledger, 3)
    ledger.join(BATCH, actor=Actor(host="other-host", pid=7), lease_us=60 * SECOND_US)
    ledger.close()
    assert refused(url) == "ledger_claimed_elsewhere"
    later = wall_clock() + 61 * SECOND_US
    connect(url, create=False, clock=lambda: later).close()


def test_a_person_can_accept_a_ledger_where_it_is(url: str, tmp_path: Path) -> None:
    """With a reason, which goes into the trail; then it opens as any other."""
    path = tmp_path / "payonce.db"
    used(url)
    shutil.copy(path, tmp_path / "backup.db")
    goes_on(url)
    shutil.copy(tmp_path / "backup.db", path)
    with pytest.raises(UsageError):
        accept_place(url, actor=OPS, reason=" ")
    accept_place(url, actor=OPS, reason="restored and reconciled")
    ledger = connect(url, create=False)
    body = orjson.loads(ledger.events()[-1].body)
    assert (body["type"], body["reason"], body["actor"]["user"]) == (
        "ledger_accepted",
        "restored and reconciled",
        "ops",
    )
    assert ledger.check() == ()
    ledger.close()


def test_marks_that_cannot_be_written_are_a_warning(url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A full or missing home must not stop payments; it is said once."""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder is wanted")
    with caplog.at_level(logging.WARNING, "payonce.ledger"):
        ledger = connect(url, create=True, marks=blocked / "marks")
        begin(ledger, 3)
        ledger.close()
    assert len(caplog.records) == 1
    assert (tmp_path / "payonce.db.head").exists()


def test_the_mark_is_never_ahead_of_the_ledger(url: str, tmp_path: Path) -> None:
    """Every mark on disk names an event that is in the ledger by then."""
    ledger = connect(url, create=True)
    worker = begin(ledger, 40)
    for n in range(1, 41):
        ledger.write(worker, [intent(n)])
        mark = orjson.loads((tmp_path / "payonce.db.head").read_bytes())
        assert mark["size"] <= ledger.info().events
    ledger.close()
    mark = orjson.loads((tmp_path / "payonce.db.head").read_bytes())
    assert mark["size"] == sqlite3.connect(tmp_path / "payonce.db").execute("SELECT size FROM head").fetchone()[0]


def test_a_ledger_whose_head_was_cut_off_is_refused(url: str, tmp_path: Path) -> None:
    """Someone removed the last event around the store: the head says so at open."""
    used(url)
    database = sqlite3.connect(tmp_path / "payonce.db")
    database.execute("DROP TRIGGER events_are_never_removed")
    database.execute("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)")
    database.commit()
    database.close()
    with pytest.raises(LedgerError) as error:
        connect(url, create=False)
    assert error.value.code == "ledger_corrupt"


def test_a_transaction_that_fails_leaves_no_mark(url: str, tmp_path: Path) -> None:
    """What was in hand when the disk failed is not what was durable."""
    ledger = connect(url, create=True)
    worker = begin(ledger, 3)
    durable = ledger.info().events
    (tmp_path / "payonce.db-wal").rename(tmp_path / "away")  # the guard refuses the commit
    with pytest.raises(LedgerError):
        ledger.write(worker, [intent(1)])
    (tmp_path / "away").rename(tmp_path / "payonce.db-wal")
    ledger.close()
    assert orjson.loads((tmp_path / "payonce.db.head").read_bytes())["size"] == durable
    connect(url, create=False).close()


def test_a_ledger_behind_a_link_is_the_same_ledger(url: str, tmp_path: Path) -> None:
    """The link is followed at once, so journal, marks and home are those of the file."""
    used(url)
    (tmp_path / "link.db").symlink_to(tmp_path / "payonce.db")
    goes_on(f"sqlite:{tmp_path / 'link.db'}")
    ledger = connect(url, create=False)
    assert "note" not in types(ledger)
    ledger.close()


def test_containers_of_one_machine_share_a_ledger(url: str) -> None:
    """Their names differ, the machine's boot is the same: no claim from elsewhere."""
    ledger = connect(url, create=True)
    begin(ledger, 3)
    here = this_actor()
    neighbour = Actor(host="container-2", pid=7, boot=here.boot.partition("/")[0] + "/1")
    ledger.join(BATCH, actor=neighbour, lease_us=60 * SECOND_US)
    ledger.close()
    connect(url, create=False).close()
