"""The spool: answers outlive the ledger that would not take them, the process, and the place they were written to."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payonce.core.commands import Change, StopBatch
from payonce.core.errors import LedgerError
from payonce.core.model import Finding
from payonce.core.money import Money
from payonce.core.states import ItemEvent, Settlement
from payonce.engine.spool import Spool, Spooled

LEDGER = "led_1"


def answer(n: int = 1) -> Spooled:
    """The commit of one item."""
    change = Change(
        n,
        ItemEvent.COMMIT,
        data={"status": 200, "start": "2026-11-30T08:00:00.000000Z"},
        reference=f"re_{n}",
        billed=Money("12.50", "USD"),
        settlement=Settlement.PENDING,
        output=b'{"text":"\xc3\xa9"}',
        findings=(Finding("duplicate", f"r{n}", {"reference": "re_9"}),),
        stop=StopBatch("amount_mismatch", "look", hold=True),
    )
    return Spooled(LEDGER, "batch", f"r{n}", n, 0, 0, change)


def spool(*places: Path) -> Spool:
    """The spool of a new process of the ledger."""
    return Spool(places, name=LEDGER)


def left(*places: Path) -> list[Spooled]:
    """All records that a new process finds."""
    return [record for _, records, _ in spool(*places).waiting() for record in records]


def test_an_answer_comes_back_as_it_was(tmp_path: Path) -> None:
    """Event, amounts, output bytes, findings and the stop: nothing is lost on the way through the file."""
    writing = spool(tmp_path)
    writing.reserve(concurrency=4)
    path = writing.write(answer())
    writing.close()
    assert [(found, torn) for found, _, torn in spool(tmp_path).waiting()] == [(path, False)]
    assert left(tmp_path) == [answer()]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
TABLES = st.dictionaries(st.text(max_size=6), JSON, max_size=4)
TEXTS = st.none() | st.text(max_size=10)
CHANGES = st.builds(
    Change,
    n=st.integers(1, 10**9),
    event=st.sampled_from(ItemEvent),
    data=TABLES,
    spent=st.integers(0, 3),
    code=TEXTS,
    message=TEXTS,
    reference=TEXTS,
    billed=st.none()
    | st.builds(Money.of_minor, st.integers(-(10**12), 10**12), st.sampled_from(["USD", "JPY", "USDC"])),
    settlement=st.none() | st.sampled_from(Settlement),
    kept=st.none() | TABLES,
    carry=st.none() | TABLES,
    output=st.none() | st.binary(max_size=20),
    generation=st.none() | st.integers(0, 9),
    not_before_us=st.integers(0, 2**60),
    seen=st.booleans(),
    burnt=st.booleans(),
    findings=st.lists(st.builds(Finding, st.text(max_size=5), TEXTS, TABLES), max_size=2).map(tuple),
    stop=st.none() | st.builds(StopBatch, st.text(max_size=5), st.text(max_size=5), st.booleans()),
)


@settings(max_examples=30, deadline=None)
@given(changes=st.lists(CHANGES, max_size=5))
def test_any_answers_come_back_in_order(tmp_path_factory: pytest.TempPathFactory, changes: list[Change]) -> None:
    """Whatever a change holds, line breaks and zero bytes in texts included."""
    folder = tmp_path_factory.mktemp("spool")
    records = [Spooled(LEDGER, "b", f"r{n}", n, 0, 0, change) for n, change in enumerate(changes)]
    writing = spool(folder)
    writing.reserve(concurrency=1)
    for record in records:
        writing.write(record)
    writing.close()
    assert left(folder) == records


def test_space_is_set_aside_before_the_first_call(tmp_path: Path) -> None:
    """One answer for each call in flight has its place on the disk already."""
    writing = spool(tmp_path)
    writing.reserve(concurrency=10)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size >= 10 * 4096
    assert path.stat().st_blocks * 512 >= 10 * 4096


def test_a_spool_that_was_not_needed_disappears(tmp_path: Path) -> None:
    """A run whose ledger took everything leaves no file; closing twice is harmless."""
    writing = spool(tmp_path)
    writing.reserve(concurrency=4)
    writing.close()
    writing.close()
    assert list(tmp_path.iterdir()) == []


def test_closing_keeps_what_was_written_and_nothing_more(tmp_path: Path) -> None:
    """The space behind the records is given back."""
    writing = spool(tmp_path)
    writing.reserve(concurrency=4)
    path = writing.write(answer())
    writing.close()
    assert path.read_bytes().count(b"\n") == 1 and path.read_bytes().endswith(b"\n")


def test_a_spool_can_be_used_again_in_one_process(tmp_path: Path) -> None:
    """After a lost lease the same spool is reserved again: what the first session wrote is found, and counted."""
    writing = spool(tmp_path)
    writing.reserve(concurrency=1)
    writing.write(answer(1))
    writing.close()
    writing.reserve(concurrency=1)
    assert [records for _, records, _ in writing.waiting()] == [(answer(1),)]
    writing.close()
    assert writing.written == 1
    assert left(tmp_path) == [answer(1)]


def test_one_s_own_file_is_not_waiting(tmp_path: Path) -> None:
    """What this process writes now is not taken in by itself while it may still write."""
    writing = spool(tmp_path)
    writing.reserve(concurrency=1)
    writing.write(answer())
    assert list(writing.waiting()) == []


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_told_and_not_used(tmp_path: Path, cut: int) -> None:
    """A record that was not written to its end never was there; those before it are whole."""
    writing = spool(tmp_path)
    writing.reserve(concurrency=1)
    writing.write(answer(1))
    path = writing.write(answer(2))
    writing.close()
    os.truncate(path, path.stat().st_size - cut - 1)
    ((_, records, torn),) = spool(tmp_path).waiting()
    assert (records, torn) == ((answer(1),), True)


def test_a_process_killed_before_its_first_answer_left_nothing(tmp_path: Path) -> None:
    """Space that was set aside and never written to holds no record, and is not torn."""
    (tmp_path / f"{LEDGER}.{'0' * 32}.spool").write_bytes(b"\0" * 70_000)
    ((_, records, torn),) = spool(tmp_path).waiting()
    assert (records, torn) == ((), False)


def test_another_ledger_s_spool_is_left_alone(tmp_path: Path) -> None:
    """Files are found by the ledger's id."""
    other = Spool([tmp_path], name="led_2")
    other.reserve(concurrency=1)
    other.write(answer())
    other.close()
    assert left(tmp_path) == []


WRITER = """
import sys
from pathlib import Path
from payonce.core.commands import Change
from payonce.core.states import ItemEvent
from payonce.engine.spool import Spool, Spooled

spool = Spool([Path(sys.argv[1])], name="led_1")
spool.reserve(concurrency=2)
spool.write(Spooled("led_1", "b", "r1", 1, 0, 0, Change(1, ItemEvent.COMMIT, reference="re_1")))
print("written", flush=True)
sys.stdin.read()
"""


def test_a_living_process_keeps_its_file_and_a_dead_one_leaves_it(tmp_path: Path) -> None:
    """While its process lives, a spool is nobody else's; once it is killed, the next start finds the record."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"written\n"
        assert left(tmp_path) == []
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert [record.change.reference for record in left(tmp_path)] == ["re_1"]


def test_a_file_is_locked_before_it_has_its_name(tmp_path: Path) -> None:
    """There is no instant at which another process could take a new spool for one that was left behind."""
    seen: list[list[Spooled]] = []
    for _ in range(20):
        writing = spool(tmp_path)
        writing.reserve(concurrency=1)
        seen.append(left(tmp_path))
        assert [path.suffix for path in tmp_path.iterdir()] == [".spool"]
        writing.close()
    assert not any(seen)


def no_folder(tmp_path: Path) -> Path:
    """A place that cannot be written to, whoever runs the tests: a file stands where the folder should be."""
    place = tmp_path / "taken"
    place.write_text("")
    return place / "spool"


def test_a_place_that_fails_at_the_start_falls_back(tmp_path: Path) -> None:
    """The next place is used, and every start looks in all of them."""
    places = (no_folder(tmp_path), tmp_path / "state" / "payonce")
    writing = spool(*places)
    writing.reserve(concurrency=1)
    path = writing.write(answer())
    writing.close()
    assert path.parent == places[1]
    assert left(*places) == [answer()]


def test_no_place_at_all_sends_nothing(tmp_path: Path) -> None:
    """Without a spool no call may be sent: an error that names the places."""
    with pytest.raises(LedgerError) as caught:
        spool(no_folder(tmp_path)).reserve(concurrency=1)
    assert caught.value.code == "no_spool" and "taken" in caught.value.message


@contextmanager
def small_files(limit: int) -> Iterator[None]:
    """A disk that takes ``limit`` bytes a file: a write beyond it is cut short first, and then fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_was_cut_short_is_never_called_written(tmp_path: Path) -> None:
    """A full disk may take half a record without an error: the spool says that it failed."""
    writing = spool(tmp_path)
    writing.reserve(concurrency=1)
    with small_files(100), pytest.raises(LedgerError) as caught:
        writing.write(answer())
    assert caught.value.code == "spool_failed" and writing.written == 0


def test_a_full_place_falls_back_and_keeps_what_it_has(tmp_path: Path) -> None:
    """The first record stands in one file, the next in another one; both are found."""
    writing = spool(tmp_path / "one", tmp_path / "two")
    writing.reserve(concurrency=1)
    first = writing.write(answer(1))
    size = first.read_bytes().rstrip(b"\0").__len__()
    with small_files(size + 100):
        second = writing.write(answer(2))
    writing.close()
    assert first != second
    assert {record.item for record in left(tmp_path / "one", tmp_path / "two")} == {"r1", "r2"}


def test_a_spool_holds_no_more_files_open_than_one(tmp_path: Path) -> None:
    """However often it falls back: a long run does not use up its file descriptors."""
    before = len(os.listdir("/proc/self/fd"))
    writing = spool(tmp_path)
    for _ in range(5):
        writing.reserve(concurrency=1)
    assert len(os.listdir("/proc/self/fd")) == before + 1
    writing.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_only_the_owner_may_read_a_spool(tmp_path: Path) -> None:
    """Answers are nobody else's business."""
    writing = spool(tmp_path)
    writing.reserve(concurrency=1)
    (path,) = tmp_path.iterdir()
    assert path.stat().st_mode & 0o077 == 0
