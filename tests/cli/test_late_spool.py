"""An answer that waits in the spool decides its item whatever became of the batch meanwhile: over, held, or planned again."""

from __future__ import annotations

from pathlib import Path

import pytest

from payonce.core.commands import Change
from payonce.core.money import Money
from payonce.core.states import ItemEvent
from payonce.engine.spool import Spool, Spooled
from payonce.ledger.connect import connect
from tests.cli.conftest import Desk

LOST = 'keys = false\nlookup = false\nscript = {R2 = ["reset_after"]}'
TEN = Money("10.00", "USD")


@pytest.fixture
def doubtful(desk: Desk) -> Desk:
    """Three items of a provider with neither keys nor look-up; the answer for R2 was lost."""
    desk.write(items=3, provider=LOST)
    assert desk("run", "batch.toml").code == 1
    return desk


def spool(desk: Desk, change: Change, *, generation: int = 0, attempt: int = 1) -> None:
    """What a process that could not write to the ledger left of R2."""
    ledger = connect(f"sqlite:{desk.folder / 'payonce.db'}", create=False)
    name = ledger.info().id
    ledger.close()
    left = Spool([desk.folder], name=name)
    left.reserve(concurrency=1)
    left.write(Spooled(name, "refunds", "R2", 2, generation, 0, change, attempt))
    left.close()


def executed(reference: str = "re_late", billed: Money = TEN) -> Change:
    return Change(2, ItemEvent.COMMIT, reference=reference, billed=billed)


def waiting(folder: Path) -> list[Path]:
    return list(folder.glob("*.spool"))


def last(desk: Desk) -> int:
    """The number of the last event."""
    ledger = connect(f"sqlite:{desk.folder / 'payonce.db'}", create=False)
    events = ledger.info().events
    ledger.close()
    return events


def second(desk: Desk) -> dict[str, object]:
    found = desk("show", "refunds", "R2", "--json").json["item"]
    return {name: found[name] for name in ("state", "reference", "code")}


def test_a_finished_batch_takes_it_in(doubtful: Desk) -> None:
    """The unknown item is committed without a call or a look-up, the exit code is the new one, the file is used up."""
    before = doubtful("status", "refunds", "--json").json
    assert (before["state"], before["items"]["unknown"]) == ("finished", 1)
    spool(doubtful, executed())
    said = doubtful("run", "batch.toml", "--json")
    assert (said.code, said.json["items"]["committed"], said.json["calls"]) == (0, 3, before["calls"])
    assert second(doubtful) == {"state": "committed", "reference": "re_late", "code": None}
    assert not waiting(doubtful.folder) and doubtful.effects() == 3
    events = doubtful("show", "refunds", "R2", "--json").json["events"]
    assert events[-1]["reason"] == "an answer from the spool"


def test_what_was_not_executed_is_sent_by_the_same_command(doubtful: Desk) -> None:
    """ "Surely nothing happened" puts the item back, which opens the finished batch, and the run goes on with it."""
    spool(doubtful, Change(2, ItemEvent.NOT_EXECUTED, code="connect_refused", spent=1))
    said = doubtful("run", "batch.toml", "--json")
    assert (said.code, said.json["state"], said.json["items"]["committed"]) == (0, "finished", 3)
    assert said.json["calls"]["sent"] == 4


@pytest.mark.parametrize(("command", "state", "code"), [("pause", "paused", 4), ("cancel", "cancelled", 0)])
def test_a_batch_that_is_held_or_cancelled_takes_it_in(desk: Desk, command: str, state: str, code: int) -> None:
    """Nothing is sent, the state stays, and the item is committed."""
    desk.write(items=3, provider=LOST, limits='budget = {USD = "20.00"}')
    assert desk("run", "batch.toml").code == 4
    assert desk(command, "refunds", "--reason", "wait").code == 0
    spool(desk, executed())
    said = desk("run", "batch.toml", "--json")
    assert (said.code, said.json["state"], said.json["items"]["committed"]) == (code, state, 2)
    assert second(desk)["reference"] == "re_late" and desk.effects() == 2


def test_an_item_that_a_person_planned_again_is_not_sent_when_it_was_executed(doubtful: Desk) -> None:
    """The person was wrong; the answer in the spool decides, and the item is paid once."""
    assert doubtful("resolve", "refunds", "R2", "--as", "planned", "--reason", "not there").code == 0
    spool(doubtful, executed())
    assert doubtful("run", "batch.toml", "--json").code == 0
    assert second(doubtful) == {"state": "committed", "reference": "re_late", "code": None}
    assert doubtful.effects() == 3
    assert doubtful("findings", "refunds", "--json").json["findings"] == []


def test_an_answer_too_late_keeps_what_it_found(doubtful: Desk) -> None:
    """A person has decided otherwise: the execution is a finding, once, however often it is taken in."""
    words = ("--as", "refused", "--reason", "not there")
    assert doubtful("resolve", "refunds", "R2", *words).code == 0
    for _ in range(2):
        spool(doubtful, executed())
        assert doubtful("run", "batch.toml").code == 1
    found = doubtful("findings", "refunds", "--json").json["findings"]
    assert [(f["class"], f["item"], f["reference"], f["amount"]) for f in found] == [
        ("duplicate", "R2", "re_late", "10.00 USD")
    ]
    assert not waiting(doubtful.folder)


def test_a_finished_batch_without_a_spool_is_left_as_it_is(doubtful: Desk) -> None:
    """No worker joins and no event is written where nothing waits."""
    events = last(doubtful)
    assert doubtful("run", "batch.toml").code == 1
    assert last(doubtful) == events > 10
