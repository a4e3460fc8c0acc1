"""The books survive the process: what was executed and what a key got is there after a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from payonce.providers.simulator import Answer, Call, JournalError, World, open_world, parse
from tests.unit.simulator.simfar import T0


class Process:
    """A process that uses a simulator's file, until it is killed."""

    def __init__(self, path: Path, *, at: int = T0, **behaviours: Any) -> None:
        self.time = at
        self.world: World = open_world(parse({"state": str(path), **behaviours}), clock=lambda: self.time)

    def refund(self, ref: str) -> object:
        """One refund under the item's own key."""
        body = orjson.dumps({"charge": f"ch_{ref}", "amount": 5, "metadata": {"ref": ref}})
        return self.world.handle(
            Call("POST", "/v1/refunds", {"authorization": "Bearer x", "idempotency-key": f"k-{ref}"}, body)
        )

    def kill(self) -> None:
        """The kernel closes the file; nothing else is written."""
        self.world.close()


def test_effects_and_keys_are_there_after_a_kill(tmp_path: Path) -> None:
    """The repeat of a key replays across processes, and ids go on where they were."""
    path = tmp_path / "sim.jsonl"
    before = Process(path)
    before.refund("a")
    before.kill()
    after = Process(path)
    again = after.refund("a")
    after.refund("b")
    assert isinstance(again, Answer)
    assert dict(again.reply.headers) == {"Idempotent-Replayed": "true"}
    assert after.world.effects[0] == before.world.effects[0]
    assert len({effect.id for effect in after.world.effects}) == 2


def test_a_torn_last_line_did_not_happen(tmp_path: Path) -> None:
    """Effect and key are one line: cut anywhere, neither is there, and the file is usable again."""
    path = tmp_path / "sim.jsonl"
    first = Process(path)
    first.refund("a")
    first.refund("b")
    first.kill()
    whole = path.read_bytes()
    start = whole.index(b"\n") + 1
    for cut in (start + 1, start + 40, len(whole) - 1):
        path.write_bytes(whole[:cut])
        again = Process(path)
        assert [effect.ref for effect in again.world.effects] == ["a"]
        again.refund("b")
        again.kill()
        assert path.read_bytes().count(b"\n") == 2


def test_a_damaged_middle_is_refused(tmp_path: Path) -> None:
    """Only the last line can be torn by a crash; anything else is an error, never skipped."""
    path = tmp_path / "sim.jsonl"
    first = Process(path)
    first.refund("a")
    first.refund("b")
    first.kill()
    path.write_bytes(b"{" + path.read_bytes())
    with pytest.raises(JournalError, match="line 1 is damaged"):
        Process(path)


def test_a_late_execution_survives_the_kill(tmp_path: Path) -> None:
    """What a provider has accepted it executes, whether or not the client's process lives, and only once."""
    path = tmp_path / "sim.jsonl"
    first = Process(path, script={"a": ["late_execution:2s"]})
    first.refund("a")
    first.kill()
    for _ in range(2):
        after = Process(path, at=T0 + 3_000_000)
        assert [(effect.ref, effect.executed_at) for effect in after.world.effects] == [("a", T0 + 2_000_000)]
        after.kill()


def test_a_script_goes_on_after_a_kill(tmp_path: Path) -> None:
    """The second call of an item is its second call, also when another process makes it."""
    path = tmp_path / "sim.jsonl"
    script = {"a": ["hang", "reset_before"]}
    first = Process(path, script=script)
    assert type(first.refund("a")).__name__ == "Silence"
    first.kill()
    after = Process(path, script=script)
    assert [type(after.refund("a")).__name__ for _ in range(2)] == ["Abort", "Answer"]


def test_one_process_at_a_time(tmp_path: Path) -> None:
    """A second process on the same file is refused, as two would not see each other's keys."""
    first = Process(tmp_path / "sim.jsonl")
    with pytest.raises(JournalError, match="another process"):
        Process(tmp_path / "sim.jsonl")
    first.kill()
