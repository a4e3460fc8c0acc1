"""A run reads an item's target before its first call: what does not fit is refused, the others go on."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from payonce.core.commands import BatchCommand, Control
from payonce.core.model import Actor, BatchSpec, Declaration, Item, Limits, NewItem
from payonce.core.money import Money
from payonce.core.outcome import Executed, Execution, LookupFailed, NotExecuted, Outcome
from payonce.core.states import ItemState
from payonce.engine.run import RunOutcome, run_batch
from payonce.engine.spool import Spool
from payonce.engine.stop import StopRequest
from payonce.ledger.inline import InlineLedger
from payonce.ledger.memory import MemoryLedger
from payonce.providers.protocol import Preflight
from payonce.providers.python import PythonProvider
from payonce.providers.python_operation import Call, operation
from payonce.service.operating import Decision, Operator
from payonce.service.running import limits_data

USD = Money("1.00", "USD")
OUTSIDE = Preflight(True, touched=True, taken=USD)


class Reading(PythonProvider):
    """An operation with a read of its targets: ``shows`` answers each, ``reads`` counts them."""

    shows: Callable[[Item], Preflight | None]
    reads: Counter[str]

    @property
    def declaration(self) -> Declaration:
        """With the read."""
        return replace(super().declaration, preflight="a read")

    async def preflight(self, item: Item, *, timeout_us: int) -> Preflight | None:
        """What the test says."""
        self.reads[item.id] += 1
        return self.shows(item)


@dataclass
class World:
    """A ledger, what is shown of targets, and what was called."""

    folder: Path
    shows: Callable[[Item], Preflight | None]
    store: MemoryLedger = field(default_factory=MemoryLedger)
    limits: Limits = field(default_factory=lambda: Limits(concurrency=4))
    called: list[str] = field(default_factory=list)
    reads: Counter[str] = field(default_factory=Counter)
    outcome_of: Callable[[Call], Outcome] = lambda call: Executed(f"re_{call.batch}_{call.item.id}", call.money)
    found: list[Execution] | LookupFailed = field(default_factory=list)

    def seal(self, items: list[NewItem], batch: str = "b", **config: Any) -> None:
        """Seals a batch."""
        spec = BatchSpec(batch, "refund", "python", targets=True, config=config)
        self.store.seal(spec, items, seal="x", actor=Actor())

    def run(self, batch: str = "b", **more: Any) -> RunOutcome:
        """Runs it, bounded in time."""

        async def look(call: Call) -> Any:
            return self.found

        @operation(key=True, retention="24h", lookup=look, max_execution="10ms")
        async def pay(call: Call) -> Outcome:
            self.called.append(call.item.id)
            return self.outcome_of(call)

        async def main() -> RunOutcome:
            provider = Reading(pay, operation="refund", batch=batch)
            provider.shows, provider.reads = self.shows, self.reads
            await provider.open()
            try:
                async with asyncio.timeout(30):
                    return await run_batch(
                        InlineLedger(self.store),
                        provider,
                        batch=self.store.batches(batch)[0],
                        limits=self.limits,
                        actor=Actor(),
                        spool=Spool([self.folder], name="ledger"),
                        ledger_id="ledger",
                        stop=StopRequest(),
                        **more,
                    )
            finally:
                await provider.close()

        return asyncio.run(main())

    def items(self, batch: str = "b") -> dict[str, Item]:
        """The items as they are."""
        return {item.id: item for item in self.store.items(batch, limit=1000).items}


def some(count: int = 1, target: str | None = None) -> list[NewItem]:
    """Items of a dollar."""
    return [NewItem(f"r{n}", USD, target=target or f"ch_{n}") for n in range(count)]


def test_what_does_not_fit_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    """With the code and words of the read; no call is made for it."""
    bad = {
        "r3": Preflight(False, "no_such_target", "there is no ch_3"),
        "r5": Preflight(False, "currency_mismatch", "the charge is in EUR, the item in USD"),
        "r7": Preflight(False, "charge_disputed", "the charge is disputed"),
    }
    world = World(tmp_path, lambda item: bad.get(item.id, Preflight(True)))
    world.seal(some(10))
    outcome = world.run()
    assert outcome.exit_code == 1
    items = world.items()
    for name, found in bad.items():
        assert (items[name].state, items[name].code) == (ItemState.REFUSED, found.code)
        assert items[name].message == found.message
        assert items[name].attempts == 0
    assert sorted(world.called) == [f"r{n}" for n in range(10) if f"r{n}" not in bad]
    assert set(world.reads.values()) == {1}
    assert world.run().exit_code == 1 and set(world.reads.values()) == {1}


def test_refusals_by_the_read_count_for_the_tripwire(tmp_path: Path) -> None:
    """A batch whose targets are all wrong stops."""
    world = World(tmp_path, lambda item: Preflight(False, "no_such_target", "there is none"))
    world.limits = Limits(concurrency=1, stop_after_refusals=3)
    world.seal(some(10))
    world.store.control("b", Control(BatchCommand.CONFIGURE, limits=limits_data(world.limits)), actor=Actor())
    assert (world.run().exit_code, world.called) == (4, [])
    assert world.store.status("b").count(ItemState.REFUSED) == 3


@pytest.mark.parametrize(
    "shown",
    [
        Preflight(False, "wrong_mode", "the charge is in live mode", stop=True),
        Preflight(False, "x", unread=LookupFailed("http_403", "may not be read", stop=True)),
    ],
)
def test_what_every_item_would_meet_stops_before_any_call(tmp_path: Path, shown: Preflight) -> None:
    """All items stay planned, and the ledger says why."""
    world = World(tmp_path, lambda item: shown)
    world.seal(some(5))
    outcome = world.run()
    assert (outcome.exit_code, world.called) == (4, [])
    assert outcome.code in ("wrong_mode", "http_403")
    assert world.store.batches("b")[0].reason_code == outcome.code
    assert world.store.status("b").count(ItemState.PLANNED) == 5
    world.shows = lambda item: Preflight(True)
    assert world.run().exit_code == 0 and len(world.called) == 5


def test_a_read_that_fails_is_made_again_and_nothing_is_sent_before(tmp_path: Path) -> None:
    """And what cannot be read within the attempts is refused: nothing was executed."""
    failed = Preflight(False, "x", unread=LookupFailed("timeout", "no answer"))
    world = World(tmp_path, lambda item: failed if item.id == "r0" or world.reads[item.id] < 3 else Preflight(True))
    world.limits = Limits(concurrency=4, attempts=4)
    world.seal(some(3))
    assert world.run().exit_code == 1
    assert world.reads == {"r0": 4, "r1": 3, "r2": 3}
    assert sorted(world.called) == ["r1", "r2"]
    refused = world.items()["r0"]
    assert (refused.state, refused.code, refused.attempts) == (ItemState.REFUSED, "attempts_exhausted", 0)
    assert "could not be read 4 times" in (refused.message or "")


def test_reads_that_are_limited_use_up_no_attempts(tmp_path: Path) -> None:
    """They slow the batch down and are made again."""
    limited = Preflight(False, "x", unread=LookupFailed("rate_limited", "429", load=True))
    world = World(tmp_path, lambda item: limited if world.reads[item.id] < 3 else Preflight(True))
    world.limits = Limits(concurrency=2, attempts=1)
    world.seal(some(2))
    assert world.run().exit_code == 0
    assert world.reads == {"r0": 3, "r1": 3}


def test_an_item_that_was_sent_is_not_read_again(tmp_path: Path) -> None:
    """Its call tells more."""
    world = World(tmp_path, lambda item: Preflight(True))

    def outcome(call: Call) -> Outcome:
        return Executed("re_1", USD) if len(world.called) > 2 else NotExecuted("busy")

    world.outcome_of = outcome
    world.seal(some())
    assert world.run().exit_code == 0
    assert (world.called, world.reads) == (["r0"] * 3, {"r0": 1})


def test_nothing_is_read_where_that_is_switched_off(tmp_path: Path) -> None:
    """The call itself is then what is judged."""
    world = World(tmp_path, lambda item: Preflight(False, "no_such_target"))
    world.seal(some(2))
    assert world.run(read_targets=False).exit_code == 0
    assert not world.reads


def test_reads_keep_to_the_rate(tmp_path: Path) -> None:
    """A read takes a turn like a call does."""
    world = World(tmp_path, lambda item: Preflight(True))
    world.limits = Limits(concurrency=8, rate_per_ks=100_000)
    world.seal(some(20))
    before = time.monotonic()
    assert world.run().exit_code == 0
    assert time.monotonic() - before >= 0.25  # forty turns, less the tenth of a second that may be saved up


USED_UP = Preflight(False, "charge_already_refunded", "all of it", already=True, touched=True, taken=USD)


def test_what_others_did_over_this_amount_is_left_out(tmp_path: Path) -> None:
    """Skipped and flagged, without a call."""
    world = World(tmp_path, lambda item: USED_UP, found=[Execution("re_theirs", USD)])
    world.seal(some())
    assert world.run().exit_code == 0
    item = world.items()["r0"]
    assert (item.state, item.code, world.called) == (ItemState.SKIPPED, "already_done_elsewhere", [])
    assert [found.kind for found in world.store.findings("b")] == ["already_done"]


@pytest.mark.parametrize("found", [[], [Execution("re_theirs", Money("0.40", "USD"))]])
def test_a_target_that_is_used_up_otherwise_is_refused(tmp_path: Path, found: list[Execution]) -> None:
    """Nothing says that this item was done."""
    world = World(tmp_path, lambda item: USED_UP, found=found)
    world.seal(some())
    assert world.run().exit_code == 1
    item = world.items()["r0"]
    assert (item.state, item.code, world.called) == (ItemState.REFUSED, "charge_already_refunded", [])


def test_what_a_lost_ledger_did_is_found_out_by_the_call(tmp_path: Path) -> None:
    """It carries our reference: the call goes out under the same key, which executes nothing twice."""
    world = World(tmp_path, lambda item: USED_UP, found=[Execution("re_ours", USD, own_reference="r0")])
    world.seal(some())
    assert world.run().exit_code == 0
    assert world.called == ["r0"]


def test_what_was_done_outside_the_ledger_is_refused_until_a_person_allows_it(tmp_path: Path) -> None:
    """Once put back by its name, with a reason, the item is sent."""
    world = World(tmp_path, lambda item: OUTSIDE)
    world.seal(some())
    assert world.run().exit_code == 1
    refused = world.items()["r0"]
    assert (refused.state, refused.code, world.called) == (ItemState.REFUSED, "acted_outside", [])
    assert "0.00 USD of it" in (refused.message or "")
    Operator(world.store, Actor()).retry("b", [], reason="all that was refused")
    assert (world.run().exit_code, world.called) == (1, []), "nobody has named it"
    Operator(world.store, Actor()).retry("b", ["r0"], reason="looked into it")
    assert world.run().exit_code == 0
    assert world.called == ["r0"]


@pytest.mark.parametrize("allowed", ["", "retried", "overlap"])
def test_what_a_lost_ledger_did_for_this_item_is_never_paid_again(tmp_path: Path, allowed: str) -> None:
    """It is unknown, names the reference, and is resolved with it; a retry of an earlier refusal sends nothing either."""
    world = World(tmp_path, lambda item: OUTSIDE)
    world.seal(some(), **({"allow_overlap": "agreed"} if allowed == "overlap" else {}))
    if allowed == "retried":
        assert world.run().exit_code == 1
        Operator(world.store, Actor()).retry("b", ["r0"], reason="looked into it")
    world.found = [Execution("re_theirs", USD), Execution("re_ours", USD, own_reference="r0")]
    assert world.run().exit_code == 1
    held = world.items()["r0"]
    assert (held.state, held.code, world.called) == (ItemState.UNKNOWN, "own_execution_shown", [])
    assert "re_ours over 1.00 USD" in (held.message or "")
    assert world.store.status("b").minor("USD", ItemState.UNKNOWN) == 100
    Operator(world.store, Actor()).resolve("b", "r0", Decision(ItemState.COMMITTED, "seen", reference="re_ours"))
    assert (world.run().exit_code, world.called) == (0, [])


def test_a_reference_that_another_target_has_too_hides_no_execution_of_our_own(tmp_path: Path) -> None:
    """Some providers count their references anew for each charge."""
    world = World(tmp_path, lambda item: Preflight(True), outcome_of=lambda call: Executed("1", call.money))
    world.seal(some(), batch="a")
    assert world.run("a").exit_code == 0
    world.shows = lambda item: OUTSIDE
    world.found = [Execution("1", USD, own_reference="r5")]
    world.seal([NewItem("r5", USD, target="ch_5")])
    assert world.run().exit_code == 1
    held = world.items()["r5"]
    assert (held.state, held.code, world.called) == (ItemState.UNKNOWN, "own_execution_shown", ["r0"])


def test_an_overlap_that_was_allowed_allows_this_too(tmp_path: Path) -> None:
    """The reason is in the batch."""
    world = World(tmp_path, lambda item: OUTSIDE)
    world.seal(some(), allow_overlap="agreed")
    assert world.run().exit_code == 0


def test_what_the_ledgers_batches_did_is_ours_under_any_name(tmp_path: Path) -> None:
    """Two items on one target, and a batch that knew the payment by its other name."""
    shown = Preflight(True, touched=True, taken=Money("2.00", "USD"), names=("ch_1", "pi_1"))
    world = World(tmp_path, lambda item: shown if world.called else Preflight(True))
    world.limits = Limits(concurrency=1)
    world.seal([NewItem("one", USD, target="ch_1"), NewItem("two", USD, target="ch_1")], batch="a")
    world.shows = lambda item: replace(shown, taken=Money.of_minor(100 * len(world.called), "USD"))
    assert world.run("a").exit_code == 0
    world.seal([NewItem("three", USD, target="pi_1")])
    assert world.run().exit_code == 0
    assert world.called == ["one", "two", "three"]
    world.seal([NewItem("four", USD, target="pi_1")], batch="c")
    world.shows = lambda item: replace(shown, taken=Money("3.01", "USD"))
    assert world.run("c").exit_code == 1


def test_a_touched_target_without_an_amount(tmp_path: Path) -> None:
    """Ours, if any item of the ledger may have done it."""
    world = World(tmp_path, lambda item: Preflight(True, touched=True))
    world.limits = Limits(concurrency=1)
    world.seal(some(2, target="ch_1"))
    world.shows = lambda item: Preflight(True, touched=bool(world.called))
    assert world.run().exit_code == 0
    world.seal(some(1, target="ch_9"), batch="c")
    assert world.run("c").exit_code == 1
