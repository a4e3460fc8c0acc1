"""Timelines of what providers and the world did to other people's runs, each with the outcome that must hold.

One test a timeline; the numbers are those of the case list in tests/data/cases/provider_scripts.jsonl, durations are
scaled down. Timelines of statements and webhooks are tested where those are read.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from payonce.core.errors import LedgerError, SealedError
from payonce.core.outcome import Refused
from payonce.core.states import BatchState, ItemState, Settlement
from payonce.engine.stop import StopRequest
from payonce.ledger.inline import InlineLedger
from payonce.providers.python import PythonProvider
from payonce.providers.python_operation import Call, operation
from payonce.service.running import check_bound
from tests.scripts.bench import Bench

KEYS_ONLY = {"lookup": False}
NEITHER = {"keys": False, "lookup": False}


def script(*what: str, item: str = "r1") -> dict[str, object]:
    """What the provider does to the calls of one item, in order."""
    return {"script": {item: list(what)}}


def test_s01_reply_lost_and_retried_inside_the_keys_life(tmp_path: Path) -> None:
    """The second call carries the same key and is replayed: executed once."""
    bench = Bench(tmp_path, KEYS_ONLY | script("silent_after", "replay"))
    assert bench.run().exit_code == 0
    assert bench.effects() == {"r1": 1}
    assert (bench.item().state, bench.item().attempts, bench.item().generation) == (ItemState.COMMITTED, 2, 0)


def test_s03_key_forgotten_and_nothing_to_look_up_with(tmp_path: Path) -> None:
    """Resumed after the key's window without a look-up: unknown, never sent again."""
    bench = Bench(tmp_path, KEYS_ONLY | {"key_retention": "400ms"} | script("silent_after"))
    bench.crash(after_s=0.1)
    time.sleep(0.3)
    assert bench.run().exit_code == 1
    assert bench.effects() == {"r1": 1}
    assert (bench.item().state, bench.item().code) == (ItemState.UNKNOWN, "key_expired")


def test_s04_the_result_cannot_be_stored(tmp_path: Path) -> None:
    """The batch stops at once, r2 is not sent; resumed, r1 is committed and executed once."""

    class Failing(InlineLedger):
        writes = 0

        async def _write(self, worker, commands):  # type: ignore[no-untyped-def]
            self.writes += 1
            if self.writes == 2:
                self.failed = LedgerError("EIO", code="ledger_io", hint="check the disk")
                raise self.failed
            return await super()._write(worker, commands)

    bench = Bench(tmp_path, KEYS_ONLY, items=[("r1", "ch_1", "1.00"), ("r2", "ch_1", "1.00")])
    assert bench.run(Failing(bench.store)).exit_code == 3
    assert bench.effects() == {"r1": 1}
    bench.alive = False
    assert bench.run().exit_code == 0
    assert bench.effects() == {"r1": 1, "r2": 1}


@pytest.mark.parametrize("shape", ["empty", "unknown"])
def test_s05_a_success_nobody_knew(tmp_path: Path, shape: str) -> None:
    """A 204, or a 2xx of unknown shape: never refused, never another key; the look-up finds it."""
    bench = Bench(tmp_path, script(f"odd_success:{shape}"))
    assert bench.run().exit_code == 0
    assert bench.effects() == {"r1": 1}
    assert (bench.item().state, bench.item().generation) == (ItemState.COMMITTED, 0)


def test_s06_accepted_is_not_failed(tmp_path: Path) -> None:
    """202 processing without any way to ask: unknown, counted as money that may have moved, not sent again."""
    bench = Bench(tmp_path, NEITHER | script("accepted_202:20ms"))
    bench.run()
    time.sleep(0.05)
    assert bench.item().state is ItemState.UNKNOWN
    assert bench.status.minor("USD", ItemState.UNKNOWN) == 1000
    assert bench.item().attempts == 1


@pytest.mark.parametrize("fault", ["silent_after", "reset_after", "close_after", "cut_after", "garbage", "hang"])
def test_s07_s11_s59_no_keys_no_lookup(tmp_path: Path, fault: str) -> None:
    """One request on the wire, whatever happened to its answer; then a person decides."""
    bench = Bench(tmp_path, NEITHER | script(fault))
    assert bench.run().exit_code == 1
    assert bench.run().exit_code == 1
    assert bench.effects()["r1"] <= 1
    assert (bench.item().state, bench.item().attempts) == (ItemState.UNKNOWN, 1)


def test_s10_a_duplicate_refusal_is_evidence_of_the_first(tmp_path: Path) -> None:
    """Refused as a duplicate on the retry, nothing to look up: unknown, no new key."""
    calls: list[str | None] = []

    @operation(key=True, retention="24h")
    async def pay(call: Call) -> Refused:
        calls.append(call.key)
        if len(calls) == 1:
            raise TimeoutError("the answer was lost")
        return Refused("duplicate_batch", "this batch was sent before")

    bench = Bench(tmp_path, {})

    async def main() -> int:
        provider = PythonProvider(pay, operation="refund", batch="b")
        await provider.open()
        outcome = await bench.run_async(provider=provider)
        await provider.close()
        return outcome.exit_code

    assert asyncio.run(main()) == 1
    assert (len(calls), len(set(calls))) == (2, 1)
    assert (bench.item().state, bench.item().code) == (ItemState.UNKNOWN, "refused_after_unresolved")


def test_s11_killed_while_a_call_hangs(tmp_path: Path) -> None:
    """An intent found at the next start means unknown where nothing can tell."""
    bench = Bench(tmp_path, NEITHER | {"timeout": "5s"} | script("silent_after"))
    bench.crash(after_s=0.1)
    assert bench.item().state is ItemState.PENDING
    bench.table["timeout"] = "150ms"
    assert bench.run().exit_code == 1
    assert bench.effects() == {"r1": 1}
    assert bench.item().state is ItemState.UNKNOWN


def test_s12_s37_s43_s56_two_runners_at_once(tmp_path: Path) -> None:
    """Two runners on one batch: every item is executed once, none is taken from a living worker."""
    items = [(f"r{k}", f"ch_{k}", "1.00") for k in range(60)]
    bench = Bench(tmp_path, {"keys": False, "latency": "5ms", "timeout": "2s"}, items=items)

    async def both() -> list[int]:
        provider = bench.build()
        await provider.open()
        runs = await asyncio.gather(*(bench.run_async(provider=provider) for _ in range(2)))
        await provider.close()
        return [run.exit_code for run in runs]

    assert asyncio.run(both()) == [0, 0]
    assert set(bench.effects().values()) == {1}
    assert bench.status.count(ItemState.COMMITTED) == 60


def test_s14_the_same_batch_again(tmp_path: Path) -> None:
    """A batch that is done makes no call when it is run again."""
    bench = Bench(tmp_path, {})
    bench.run()
    calls = bench.status.calls_sent
    assert bench.run().exit_code == 0
    assert (bench.status.calls_sent, bench.effects()) == (calls, {"r1": 1})


def test_s22_the_first_request_is_still_running(tmp_path: Path) -> None:
    """409 in use waits without using up attempts, until the first call's answer is replayed."""
    bench = Bench(tmp_path, KEYS_ONLY | {"timeout": "100ms"} | script("slow:600ms"), attempts=2)
    assert bench.run().exit_code == 0
    assert bench.effects() == {"r1": 1}
    assert (bench.item().state, bench.item().generation) == (ItemState.COMMITTED, 0)


def test_s23_a_stored_500_is_not_asked_for_for_ever(tmp_path: Path) -> None:
    """After the first replayed error no further call is made and no new key is taken: unknown."""
    bench = Bench(tmp_path, KEYS_ONLY | script("error_500_after"))
    assert bench.run().exit_code == 1
    assert bench.effects() == {"r1": 1}
    assert (bench.item().state, bench.item().attempts, bench.item().generation) == (ItemState.UNKNOWN, 2, 0)


def test_s23_with_a_lookup_the_burnt_key_is_replaced_only_after_proof(tmp_path: Path) -> None:
    """Not executed and the 500 is stored: only the look-up's proof allows a new generation, which succeeds."""
    bench = Bench(tmp_path, script("error_500_before", "replay", "ok"))
    assert bench.run().exit_code == 0
    assert bench.effects() == {"r1": 1}
    assert (bench.item().state, bench.item().generation) == (ItemState.COMMITTED, 1)


def test_s25_the_same_amount_again_is_refused(tmp_path: Path) -> None:
    """A second refund of the same amount on one charge is refused by the provider's rule, not taken as done."""
    items = [("a", "ch_1", "5.00"), ("b", "ch_1", "5.00")]
    bench = Bench(tmp_path, {"same_amount_window": "24h"}, items=items)
    assert bench.run().exit_code == 1
    assert bench.effects() == {"a": 1}
    assert (bench.item("a").state, bench.item("b").state) == (ItemState.COMMITTED, ItemState.REFUSED)


def test_s28_accepted_and_waiting_is_not_sent_again(tmp_path: Path) -> None:
    """A pending status is a commit whose settlement is pending; a resume makes no call."""
    bench = Bench(tmp_path, {"settles_after": "1h"})
    assert bench.run().exit_code == 0
    assert (bench.item().state, bench.item().settlement) == (ItemState.COMMITTED, Settlement.PENDING)
    bench.run()
    assert bench.effects() == {"r1": 1}


def test_s29_already_refunded_by_someone_else(tmp_path: Path) -> None:
    """Another's refund is found: skipped and flagged, not committed."""
    others = Bench(
        tmp_path, {"charges": {"ch_1": {"amount": 1000, "currency": "usd"}}}, items=[("other", "ch_1", "10.00")]
    )
    others.run()
    bench = Bench(tmp_path, {"charges": {"ch_1": {"amount": 1000, "currency": "usd"}}})
    assert bench.run().exit_code == 0
    assert bench.effects() == {"other": 1}
    assert (bench.item().state, bench.item().code) == (ItemState.SKIPPED, "already_done_elsewhere")
    assert [f.kind for f in bench.store.findings("b")] == ["already_done"]


def test_s31_less_is_left_than_asked(tmp_path: Path) -> None:
    """Too much for what is left: refused, and nothing smaller is sent instead."""
    bench = Bench(tmp_path, {"charges": {"ch_1": {"amount": 2000, "currency": "usd"}}}, items=[("r1", "ch_1", "30.00")])
    assert bench.run().exit_code == 1
    assert bench.effects() == {}
    assert bench.item().state is ItemState.REFUSED


def test_s32_disputed_meanwhile(tmp_path: Path) -> None:
    """A disputed charge is refused once, with its reason, and not tried again."""
    bench = Bench(tmp_path, script("refuse:charge_disputed"))
    assert bench.run().exit_code == 1
    assert bench.effects() == {}
    assert (bench.item().state, bench.item().attempts) == (ItemState.REFUSED, 1)
    assert "charge_disputed" in f"{bench.item().code} {bench.item().message}"


def test_s36_test_credentials_on_a_live_batch(tmp_path: Path) -> None:
    """Another mode than the batch was sealed with is refused before the first call."""
    bench = Bench(tmp_path, {"account": "acct_sim"})
    provider = bench.build()

    async def identify() -> None:
        await provider.open()
        found = await provider.identify()
        await provider.close()
        sealed = bench.store.batches("b")[0]
        from dataclasses import replace

        live = replace(
            sealed, spec=replace(sealed.spec, account=found.account, mode="live" if found.mode != "live" else "test")
        )
        with pytest.raises(SealedError, match="mode"):
            check_bound(live, found, digest=provider.provider_digest)

    asyncio.run(identify())
    assert bench.effects() == {}


def test_s40_interrupted_during_a_slow_call(tmp_path: Path) -> None:
    """Stopped while a call runs, gone before it answers: pending, then resolved, executed once."""
    bench = Bench(
        tmp_path, KEYS_ONLY | {"timeout": "2s"} | script("slow:300ms"), items=[("r1", "a", "1.00"), ("r2", "b", "1.00")]
    )

    async def interrupted() -> None:
        stop = StopRequest()
        run = asyncio.create_task(bench.run_async(stop=stop))
        await asyncio.sleep(0.1)
        stop.signal()
        stop.signal()
        outcome = await run
        assert outcome.exit_code == 75

    asyncio.run(interrupted())
    assert bench.run().exit_code == 0
    assert set(bench.effects().values()) == {1}


def test_s47_retry_after_as_a_date(tmp_path: Path) -> None:
    """A 429 with an HTTP date is waited for; it uses up no attempt."""
    fault = {"kind": "rate_limited", "retry_after": "2s", "retry_as": "date"}
    bench = Bench(tmp_path, {"script": {"r1": [fault]}, "timeout": "2s"}, attempts=1)
    start = time.monotonic()
    assert bench.run().exit_code == 0
    assert time.monotonic() - start > 0.9  # a date has whole seconds
    assert bench.effects() == {"r1": 1}


def test_s48_a_storm_of_429s(tmp_path: Path) -> None:
    """All calls of a moment are refused for load: the batch slows down and gives nothing up."""
    items = [(f"r{k}", f"ch_{k}", "1.00") for k in range(60)]
    bench = Bench(tmp_path, {"rate_limit": 25, "timeout": "2s"}, items=items, attempts=1)
    assert bench.run().exit_code == 0
    assert len(bench.effects()) == 60
    assert set(bench.effects().values()) == {1}


def test_s49_the_object_is_locked(tmp_path: Path) -> None:
    """A 429 lock_timeout is no failure, and two refunds of one charge follow each other."""
    items = [("a", "ch_1", "1.00"), ("b", "ch_1", "2.00")]
    bench = Bench(tmp_path, script("lock_timeout", item="a"), items=items, attempts=1)
    assert bench.run().exit_code == 0
    assert bench.effects() == {"a": 1, "b": 1}


def test_s60_another_amount_than_asked(tmp_path: Path) -> None:
    """Asked 32.00, executed 4454.50: committed as billed, flagged, and the batch stops with exit 4."""
    items = [("r1", "ch_1", "32.00"), *((f"s{k}", "ch_1", "1.00") for k in range(5))]
    bench = Bench(tmp_path, script("other_amount:442250"), items=items)
    outcome = bench.run()
    assert (outcome.exit_code, outcome.state, outcome.code) == (4, BatchState.STOPPED, "amount_mismatch")
    assert "r1" in (outcome.reason or "")
    billed = bench.item().billed
    assert billed is not None
    assert billed.text == "4454.50"
    assert bench.amounts() == [445_450]
    assert [f.kind for f in bench.store.findings("b")] == ["amount_mismatch"]
