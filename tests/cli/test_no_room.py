"""Files that a command cannot write: it says so, leaves no half of one behind, and never claims the opposite. The limit on
the size of files is real."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from payonce.core.errors import UsageError
from payonce.trail.appending import append_whole
from payonce.trail.keys import load_private, load_public, new_key, save
from tests.cli.conftest import Desk


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may be longer."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def signed(desk: Desk) -> Desk:
    """A ledger with a key."""
    desk.write(items=3)
    assert desk("plan", "batch.toml").code == 0
    assert desk("trail", "key").code == 0
    return desk


def test_a_checkpoint_that_was_not_kept_is_an_error(signed: Desk) -> None:
    """The file is not there to be written: exit code 2, and nothing claims that it was appended."""
    said = signed("trail", "checkpoint", "--out", "none/kept.txt")
    assert said.code == 2
    assert "could not be appended" in said.err
    assert "appended to" not in said.err.replace("be appended to", "")


def test_a_text_is_added_whole_or_not_at_all(signed: Desk) -> None:
    """The half that found room is taken back, so that the next checkpoint can be read."""
    path = signed.folder / "kept.txt"
    append_whole(path, "one\n")
    with room_for(6), pytest.raises(OSError):
        append_whole(path, "two, longer\n")
    append_whole(path, "three\n")
    assert path.read_text() == "one\nthree\n"


def test_a_key_that_finds_no_room_leaves_nothing(signed: Desk) -> None:
    """Neither half a private key nor half a public one beside it."""
    path = signed.folder / "other.key"
    for room in (20, 90):  # in the private key; behind it, in the public one that another key has used already
        public = path.with_name("other.key.pub")
        public.write_text("# " + "x" * 60 + "\n")
        with room_for(room), pytest.raises(UsageError) as error:
            save(new_key("payonce/n"), path)
        assert error.value.code == "file_unwritable"
        assert not path.exists()
        assert public.read_text() == "# " + "x" * 60 + "\n"


def test_a_rotation_that_fails_keeps_the_old_key(signed: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is where it was and goes on signing."""
    path = signed.folder / "payonce.db.key"
    before = path.read_text()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("payonce.trail.keys.append_whole", full)
        assert signed("trail", "key", "--rotate", "--reason", "a leak").code == 2
    assert path.read_text() == before
    assert load_private(str(path), environ={}).verifier in load_public(f"{path}.pub")
    assert signed("trail", "checkpoint").code == 0


def test_a_proof_that_finds_no_room_is_said(signed: Desk) -> None:
    """With the file's name, as for any other file of a command."""
    assert signed("run", "batch.toml", "--yes").code == 0
    said = signed("trail", "prove", "batch.toml", "R1", "--out", "none/proof.json", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "file_unwritable")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_disk_is_no_bug(desk: Desk, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What no command has foreseen of disks and permissions is told as such, not as an internal error."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(number, "not here", "some/file")

    monkeypatch.setattr("payonce.cli.look.opened", refused)
    desk.write()
    assert desk("plan", "batch.toml").code == 0
    said = desk("status", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "system_refused")
    assert "some/file" in said.json["error"]["message"]
