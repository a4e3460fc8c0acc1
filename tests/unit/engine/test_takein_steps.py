"""What the spool tells of items that no open intent waits for, or that one executed call of several does not decide."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from payonce.core.commands import Change, Landed
from payonce.core.model import SECOND_US, Actor, Finding
from payonce.core.money import Money
from payonce.core.states import ItemEvent, ItemState
from payonce.engine.spool import Spool, Spooled
from payonce.engine.takein import take_in_only
from payonce.ledger.inline import InlineLedger
from payonce.ledger.memory import MemoryLedger
from payonce.ledger.outputs import OutputFiles
from payonce.ledger.protocol import Ledger
from payonce.testing.ledger_world import BATCH, World, new_item

STEP = Change(1, ItemEvent.STEP_DONE, data={"reference": "tr_1"}, carry={"step_0": "tr_1"})


class Factory:
    """A ledger in memory."""

    def open(self, *, clock: Callable[[], int], is_alive: Callable[[Actor], bool | None]) -> Ledger:
        return MemoryLedger(clock=clock, is_alive=is_alive)


@pytest.fixture
def world() -> World:
    return World(Factory())


def spool(folder: Path, *records: tuple[Change, int, int, int]) -> Path:
    """A spool with answers about ``item-1``: change, generation, step, attempt."""
    left = Spool([folder], name="ledger")
    left.reserve(concurrency=1)
    for change, generation, step, attempt in records:
        path = left.write(Spooled("ledger", BATCH, "item-1", 1, generation, step, change, attempt))
    left.close()
    return path


def take_in(world: World, folder: Path) -> bool:
    """As a start does that sends nothing."""

    async def taking() -> bool:
        assert isinstance(world.ledger, MemoryLedger)
        return await take_in_only(
            InlineLedger(world.ledger), batch=world.ledger.batches(BATCH)[0], actor=Actor(), lease_us=30 * SECOND_US,
            spool=Spool([folder], name="ledger"), ledger_id="ledger", outputs=OutputFiles(None),
        )  # fmt: skip

    return asyncio.run(taking())


def found(world: World) -> list[tuple[str, str | None]]:
    return [(finding.kind, finding.item) for finding in world.ledger.findings(BATCH)]


def test_an_executed_call_of_an_unknown_item_is_told_and_does_not_decide_it(world: World, tmp_path: Path) -> None:
    """One call of several: the item stays unknown, keeps what came back, and a finding tells whoever decides. Once."""
    world.bring(world.start(1), 1, ItemState.UNKNOWN)
    path = spool(tmp_path, (STEP, 0, 0, 1))
    kept = path.read_bytes()
    assert take_in(world, tmp_path)
    path.write_bytes(kept)  # a crash came before the file was removed
    assert take_in(world, tmp_path)
    item = world.item(1)
    assert (item.state, item.step, item.carry["step_0"]) == (ItemState.UNKNOWN, 0, "tr_1")
    assert found(world) == [("half_done", "item-1")]
    assert not path.exists()


def test_whoever_comes_for_the_spool_alone_notes_its_steady_clock(world: World, tmp_path: Path) -> None:
    """Items pass through its hands: whoever takes them from it has to be able to tell how far the clock was set."""
    world.bring(world.start(1), 1, ItemState.UNKNOWN)
    spool(tmp_path, (STEP, 0, 0, 1))
    assert take_in(world, tmp_path)
    joined = [orjson.loads(event.body) for event in world.ledger.events(BATCH) if b"worker_joined" in event.body]
    assert joined[-1]["actor"]["steady_us"] > 0


def test_a_planned_item_with_an_executed_call_waits_for_a_person(world: World, tmp_path: Path) -> None:
    """It is not sent from its first call on again."""
    world.bring(world.start(1), 1, ItemState.UNKNOWN)
    assert world.operate(1, Change(1, ItemEvent.NOT_EXECUTED, generation=1)) is Landed.LANDED
    spool(tmp_path, (STEP, 0, 0, 1))
    take_in(world, tmp_path)
    item = world.item(1)
    assert (item.state, item.code) == (ItemState.UNKNOWN, "late_answer")
    assert item.message == "tr_1 was executed, as an answer in the spool shows"
    assert found(world) == [("half_done", "item-1")]
    world.assert_sound()


def test_a_call_that_the_ledger_has_is_no_finding(world: World, tmp_path: Path) -> None:
    """The step was written after all, and the item went on."""
    worker = world.start(1)
    world.intend(worker, 1)
    world.change(worker, 1, ItemEvent.STEP_DONE, carry={"step_0": "tr_1"})
    world.intend(worker, 1)
    world.change(worker, 1, ItemEvent.NOT_EXECUTED)
    spool(tmp_path, (STEP, 0, 0, 1))
    take_in(world, tmp_path)
    assert world.item(1).state is ItemState.PLANNED and found(world) == []


def test_a_planned_item_on_a_busy_target_is_committed_too(world: World, tmp_path: Path) -> None:
    """Another item holds the target meanwhile: the answer does not wait for it."""
    worker = world.start([new_item(n, target="ch_1") for n in (1, 2)], targets=True)
    world.bring(worker, 1, ItemState.UNKNOWN)
    assert world.operate(1, Change(1, ItemEvent.NOT_EXECUTED, generation=1)) is Landed.LANDED
    world.intend(worker, 2)
    spool(tmp_path, (Change(1, ItemEvent.COMMIT, reference="re_1", billed=Money("10.00", "USD")), 0, 0, 1))
    take_in(world, tmp_path)
    assert (world.item(1).state, world.item(1).reference) == (ItemState.COMMITTED, "re_1")
    assert world.item(2).state is ItemState.PENDING
    world.assert_sound()


def test_what_an_undecided_answer_found_is_kept(world: World, tmp_path: Path) -> None:
    """Another amount was executed than asked; the item is unknown already for another reason, the finding is not lost."""
    world.bring(world.start(1), 1, ItemState.UNKNOWN)
    wrong = Finding("amount_mismatch", "item-1", {"reference": "re_1", "asked": "10.00 USD", "billed": "1.00 USD"})
    spool(tmp_path, (Change(1, ItemEvent.UNDECIDED, code="wrong_amount", findings=(wrong,)), 0, 0, 1))
    take_in(world, tmp_path)
    assert found(world) == [("amount_mismatch", "item-1")]


def test_other_batches_answers_stay(world: World, tmp_path: Path) -> None:
    """Nothing is written for a spool that holds nothing of this batch, and the file stays."""
    world.start(1)
    path = spool(tmp_path, (STEP, 0, 0, 1))
    path.write_bytes(path.read_bytes().replace(b'"refunds"', b'"payouts"'))
    events = world.types()
    assert not take_in(world, tmp_path)
    assert world.types() == events and path.exists()
