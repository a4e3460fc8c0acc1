"""The file of a JSON Lines ledger: torn and damaged, replaced under the process, full, killed, read beside its writer."""

from __future__ import annotations

import errno
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from payonce.core.commands import BatchCommand, Control, Landed
from payonce.core.errors import LedgerError, LedgerPlaceError
from payonce.core.model import BatchSpec, NewItem
from payonce.core.money import Money
from payonce.core.states import ItemState
from payonce.ledger import jsonl_file
from payonce.ledger.connect import connect, connect_trail
from payonce.ledger.jsonl import JsonlLedger
from payonce.trail.verify import verify
from tests.unit.ledger.ledgers import BATCH, OPS, begin, commit, intent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "payonce.jsonl"


def used(path: Path, *, intents: int = 2) -> int:
    """A ledger with a batch of three, some items intended and the first committed; the file's size."""
    ledger = connect(f"jsonl:{path}", create=True)
    worker = begin(ledger, 3, lease_s=0)
    worker = ledger.renew(worker, lease_us=60_000_000)
    for n in range(1, intents + 1):
        assert ledger.write(worker, [intent(n)]) == (Landed.LANDED,)
    assert ledger.write(worker, [commit(1)]) == (Landed.LANDED,)
    ledger.close()
    return path.stat().st_size


def code_of(path: Path) -> str:
    """The code under which the ledger is refused for writing."""
    with pytest.raises(LedgerError) as error:
        connect(f"jsonl:{path}", create=False)
    return error.value.code


def notes(path: Path) -> list[dict[str, object]]:
    """The notes in its trail."""
    ledger = connect(f"jsonl:{path}", create=False, read_only=True)
    try:
        bodies = [orjson.loads(event.body) for event in ledger.events()]
        return [body for body in bodies if body["type"] == "note"]
    finally:
        ledger.close()


def ends_of(data: bytes) -> list[int]:
    """Where each group ends."""
    ends, at = [], 0
    for line in data.splitlines(keepends=True):
        at += len(line)
        if line.startswith(b'{"$end"'):
            ends.append(at)
    return ends


def stumps() -> Iterator[tuple[str, bytes]]:
    """What a write that was cut short may leave behind the last whole group."""
    group = b'{"$rows":[["meta","a","b"]]}\n{"actor":{},"type":"note"}\n{"$end":{"lines":2},"sha256":"' + b"0" * 64
    yield "in the middle of the first line", group[:9]
    yield "behind the first line", group[: group.index(b"\n") + 1]
    yield "in the closing line", group[:-5]
    yield "blocks that never reached the disk", group[:30] + b"\0" * 4096
    yield "a hole, and its end", group[:20] + b"\0" * 30 + group[50:] + b'"}\n'


@pytest.mark.parametrize(("stump"), [s for _, s in stumps()], ids=[name for name, _ in stumps()])
def test_a_torn_end_is_set_aside_and_noted(path: Path, stump: bytes) -> None:
    """Nothing acknowledged is touched; what was torn is kept beside, the trail says so, the next group follows whole."""
    size = used(path)
    whole = path.read_bytes()
    path.write_bytes(whole + stump)
    ledger = connect(f"jsonl:{path}", create=False)
    assert ledger.item(BATCH, "item-2").state is ItemState.PENDING  # type: ignore[union-attr]
    assert ledger.check() == ()
    ledger.close()
    (kept,) = path.parent.glob("payonce.jsonl.torn-*")
    assert kept.read_bytes() == stump
    assert path.read_bytes()[:size] == whole
    assert [(note["code"], note["bytes"], note["kept"]) for note in notes(path)] == [
        ("torn_end_cut", len(stump), kept.name)
    ]


def test_a_reader_leaves_a_torn_end_alone(path: Path) -> None:
    """Somebody may be writing it."""
    used(path)
    path.write_bytes(path.read_bytes() + b'{"$rows":[')
    before = path.read_bytes()
    ledger = connect(f"jsonl:{path}", create=False, read_only=True)
    assert ledger.status(BATCH).count(ItemState.COMMITTED) == 1
    ledger.close()
    assert path.read_bytes() == before


def test_every_cut_is_either_whole_or_torn(path: Path) -> None:
    """Cut at any byte the file opens with the groups before the cut; without its marks nobody can tell that more was
    there, with them what was durable is missed."""
    used(path)
    whole = path.read_bytes()
    ends = ends_of(whole)
    for cut in {*range(ends[0], len(whole), 31), *ends[1:], *(end - 1 for end in ends[1:])}:
        copy = path.parent / "cut" / path.name
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(whole[:cut])
        rows = connect(f"jsonl:{copy}", create=False, read_only=True)
        events = len(rows.events(limit=1000))
        rows.close()
        at = max((end for end in ends if end <= cut), default=0)
        expected = sum(1 for line in whole[:at].split(b"\n") if line and not line.startswith(b'{"$'))
        assert events == expected
    path.write_bytes(whole[: ends[-1] - 1])
    assert code_of(path) == "ledger_rolled_back"


def test_damage_before_the_end_is_refused_with_its_line(path: Path) -> None:
    """Changed bytes in any line, the last one included, stop everything; nothing is skipped and nothing is cut."""
    used(path)
    lines = path.read_bytes().split(b"\n")[:-1]
    for k, line in enumerate(lines):
        changed = [*lines]
        middle = len(line) // 2
        changed[k] = line[:middle] + (b"#" if line[middle : middle + 1] != b"#" else b"+") + line[middle + 1 :]
        data = b"\n".join(changed) + b"\n"
        path.write_bytes(data)
        with pytest.raises(LedgerError) as error:
            connect(f"jsonl:{path}", create=False)
        if k:  # the first line is the file's own: without it, it is no ledger
            assert error.value.code == "ledger_corrupt", (k, error.value)
            said = [int(word) for word in error.value.message.replace(";", " ").split() if word.isdigit()]
            assert said[0] <= k + 1 <= said[-1]
        assert path.read_bytes() == data
        assert not list(path.parent.glob("*.torn-*"))


@pytest.mark.parametrize("which", [0, 1, -1])
def test_lines_taken_out_or_put_twice_are_damage(path: Path, which: int) -> None:
    """A whole group that is removed or repeated breaks the chain of digests."""
    used(path)
    data = path.read_bytes()
    ends = [0, *ends_of(data)]
    groups = [data[a:b] for a, b in pairwise(ends)]
    middle = groups[1:-1][which]
    for changed in (data.replace(middle, b"", 1), data.replace(middle, middle + middle, 1)):
        path.write_bytes(changed)
        assert code_of(path) == "ledger_corrupt"


def test_an_empty_file_and_another_file_are_no_ledger(path: Path, tmp_path: Path) -> None:
    """An existing file is never made new."""
    path.write_bytes(b"")
    assert code_of(path) == "ledger_empty"
    path.write_bytes(b'{"seq":1,"op":"r1","ev":"intent"}\n')
    assert code_of(path) == "ledger_foreign"
    path.write_bytes(b'{"$payonce":{"format":1,"id":"x"}}\n')
    assert code_of(path) == "ledger_corrupt"
    path.write_bytes(b'{"$payonce":{"format":99,"id":"x"}}\n')
    assert code_of(path) == "ledger_too_new"
    with pytest.raises(LedgerError) as error:
        connect(f"jsonl:{tmp_path / 'none.jsonl'}", create=False)
    assert error.value.code == "no_ledger"


def test_a_lost_ledger_is_not_replaced(path: Path) -> None:
    """The mark beside it says that one was there."""
    used(path)
    path.unlink()
    with pytest.raises(LedgerPlaceError) as error:
        connect(f"jsonl:{path}", create=True)
    assert error.value.code == "ledger_lost"


def test_a_reader_follows_its_writer(path: Path) -> None:
    """What was appended since is seen at the next reading, without opening the ledger again."""
    used(path, intents=1)
    writer, reader = connect(f"jsonl:{path}", create=False), connect(f"jsonl:{path}", create=False, read_only=True)
    events = len(reader.events(limit=1000))
    writer.control(BATCH, Control(BatchCommand.PAUSE), actor=OPS)
    assert len(reader.events(limit=1000)) == events + 1
    assert reader.info().root == writer.info().root
    reader.close()
    writer.close()


def test_the_trail_verifies(path: Path) -> None:
    """Hashes, replay and rows agree, as in any store."""
    used(path)
    reads = connect_trail(f"jsonl:{path}")
    found = verify(reads, url=f"jsonl:{path}")
    assert (found.ok, found.items) == (True, 3)
    reads.close()


def test_a_file_replaced_under_the_process_is_noticed(path: Path) -> None:
    """What would be written then is lost: nothing lands."""
    used(path)
    ledger = connect(f"jsonl:{path}", create=False)
    path.with_suffix(".copy").write_bytes(path.read_bytes())
    path.with_suffix(".copy").replace(path)
    with pytest.raises(LedgerError) as error:
        begin(ledger, 2, batch="another")
    assert error.value.code == "ledger_replaced"
    assert len(ledger.batches()) == 1
    ledger.close()


@pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
def test_a_failed_write_is_never_repeated(path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error of the disk nothing of the group is there, and this process appends nothing any more: a second
    fsync may say yes to bytes that are lost. The next process goes on."""
    used(path)
    ledger = connect(f"jsonl:{path}", create=False)
    size = path.stat().st_size

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(jsonl_file.os, call, broken)
        with pytest.raises(LedgerError) as error:
            begin(ledger, 2, batch="another")
        assert error.value.code == "ledger_io"
    with pytest.raises(LedgerError) as again:
        begin(ledger, 2, batch="another")
    assert again.value.code == "ledger_io"
    assert (len(ledger.batches()), path.stat().st_size) == (1, size)
    ledger.close()
    ledger = connect(f"jsonl:{path}", create=False)
    begin(ledger, 2, batch="another")
    assert ledger.check() == ()
    ledger.close()


def test_a_full_disk_leaves_the_file_as_it_was(path: Path) -> None:
    """A limit on the size of files, for real: the part that was written is cut off again."""
    size = used(path)
    ledger = connect(f"jsonl:{path}", create=False)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 700, before[1]))
    try:
        with pytest.raises(LedgerError) as error:
            begin(ledger, 5000, batch="another")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert error.value.code in ("ledger_io", "disk_full")
    assert path.stat().st_size == size
    ledger.close()


_KILLED = """
import os, signal, sys
from pathlib import Path
from payonce.ledger import jsonl_file
from payonce.ledger.connect import connect
from tests.unit.ledger.ledgers import begin
real, count = os.pwrite, int(sys.argv[2])

def half(fd, data, at):
    written = real(fd, data[: len(data) // 2], at)
    os.kill(os.getpid(), signal.SIGKILL)

ledger = connect(sys.argv[1], create=False)
jsonl_file.os.pwrite = half
begin(ledger, count, batch="another")
"""


@pytest.mark.parametrize("items", [3, 30_000])
def test_killed_in_the_middle_of_a_write(path: Path, items: int) -> None:
    """A process that dies with half a group written leaves the groups before it; the lock is free at once."""
    used(path)
    child = subprocess.run([sys.executable, "-c", _KILLED, f"jsonl:{path}", str(items)], check=False, timeout=60)
    assert child.returncode == -signal.SIGKILL
    ledger = connect(f"jsonl:{path}", create=False)
    assert [batch.spec.id for batch in ledger.batches()] == [BATCH]
    assert ledger.check() == ()
    assert next(path.parent.glob("*.torn-*")).stat().st_size > 0
    ledger.close()


def test_what_is_erased_is_gone_from_the_file(path: Path) -> None:
    """The file is written anew without it: no earlier line holds it any more, the trail stays the same, others wait
    for the new file, readers find it, and what is written later follows in it."""
    ledger = connect(f"jsonl:{path}", create=True)
    new = [NewItem(f"item-{n}", Money("10.00", "USD"), fields={"name": f"Somebody {n}"}) for n in (1, 2)]
    ledger.seal(BatchSpec(BATCH, "refund", "simulator"), new, seal="seal", actor=OPS)
    ledger.control(BATCH, Control(BatchCommand.CANCEL), actor=OPS)
    reader = connect(f"jsonl:{path}", create=False, read_only=True)
    root = ledger.info().root
    assert reader.info().root == root
    assert ledger.erase(BATCH, ["item-1"], fields=None, actor=OPS, reason="asked for") == 1
    assert b"Somebody 1" not in path.read_bytes()
    assert b"Somebody 2" in path.read_bytes()
    assert reader.info() == ledger.info()
    assert reader.item(BATCH, "item-1").fields == {"$erased": ["name"]}  # type: ignore[union-attr]
    begin(ledger, 2, batch="another")
    assert ledger.check() == ()
    with pytest.raises(LedgerError) as error:
        JsonlLedger(path, lock_timeout_s=0.1)
    assert error.value.code == "ledger_locked"
    ledger.close()
    again = connect(f"jsonl:{path}", create=False)
    assert (len(again.batches()), again.check()) == (2, ())
    again.close()
    reader.close()
