"""``--check``: what is asked of the provider, how fast, and what becomes of the answers."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

import payonce
from payonce.core.errors import SealedError
from payonce.core.model import Actor, BatchSpec, Declaration, Item, NewItem
from payonce.core.money import Money
from payonce.ledger.memory import MemoryLedger
from payonce.providers.protocol import Preflight
from payonce.service import batchfile
from payonce.service.batchfile import BatchFile
from payonce.service.overlaps import Overlaps
from payonce.service.planning_checks import check_targets
from payonce.service.planning_known import Known

BATCH = (
    '[batch]\nid = "b"\noperation = "refund"\ninput = "i.csv"\n[item]\nid = "id"\ntarget = "charge"\namount = "amount"\n'
    'currency = "currency"\n[limits]\nconcurrency = 3\n{limits}\n[provider]\nkind = "simulator"\nstate = "s"\n'
)


class Reads:
    """A provider of which only the cheap read is asked. Ten dollars are left on every charge."""

    def __init__(self, *, none: bool = False) -> None:
        self.declaration = Declaration("reads", "refund")
        self.asked: list[tuple[str, str]] = []
        self.none = none
        self.now = self.most = 0

    async def preflight(self, item: Item, *, timeout_us: int) -> Preflight | None:
        """Counts how many are asked at once."""
        if self.none:
            return None
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.001)
        self.now -= 1
        self.asked.append((item.target, str(item.money)))
        fits = item.money is not None and item.money.minor <= 1000
        return Preflight(fits, None if fits else "over_limit", f"10.00 USD is left, {item.money} is asked")


def file_of(folder: Path, limits: str = "") -> BatchFile:
    """A batch file with some limits."""
    (folder / "b.toml").write_text(BATCH.format(limits=limits))
    return batchfile.load(folder / "b.toml")


def check(provider: Any, items: list[NewItem], file: BatchFile) -> tuple[Any, int | None, str | None]:
    """The check of some items."""
    return asyncio.run(check_targets(provider, lambda: iter(items), file, "i.csv"))


def item(n: int, target: str, amount: str, currency: str = "USD") -> NewItem:
    """An item in line n + 1."""
    return NewItem(f"r{n}", Money(amount, currency), target=target, line=n + 1)


def test_items_on_one_target_are_asked_together(tmp_path: Path) -> None:
    """Each alone would fit; together they ask for more than is left, and all of them are named."""
    provider = Reads()
    items = [item(1, "ch_1", "6.00"), item(2, "ch_2", "10.00"), item(3, "ch_1", "6.00"), item(4, "ch_3", "10.01")]
    findings, checked, warning = check(provider, items, file_of(tmp_path))
    assert sorted(provider.asked) == [("ch_1", "12.00 USD"), ("ch_2", "10.00 USD"), ("ch_3", "10.01 USD")]
    assert [(found.value, found.line, found.code) for found in findings] == [
        ("r1", 2, "over_limit"),
        ("r3", 4, "over_limit"),
        ("r4", 5, "over_limit"),
    ]
    assert "all 2 items on ch_1 together" in findings[0].message
    assert (checked, warning) == (4, None)


def test_other_currencies_on_a_target_are_asked_apart(tmp_path: Path) -> None:
    """No sum is made over currencies."""
    provider = Reads()
    check(provider, [item(1, "ch_1", "1.00"), item(2, "ch_1", "1.00", "EUR")], file_of(tmp_path))
    assert sorted(provider.asked) == [("ch_1", "1.00 EUR"), ("ch_1", "1.00 USD")]


def test_reads_keep_to_concurrency_and_rate(tmp_path: Path) -> None:
    """Never more at once than the batch allows, and never faster than its rate."""
    provider = Reads()
    items = [item(n, f"ch_{n}", "1.00") for n in range(21)]
    check(provider, items, file_of(tmp_path))
    assert provider.most == 3
    before = time.monotonic()
    check(provider, items, file_of(tmp_path, 'rate = "100/s"'))
    assert time.monotonic() - before >= 0.2


def test_an_adapter_without_a_read_is_said(tmp_path: Path) -> None:
    """Nothing is called checked."""
    findings, checked, warning = check(Reads(none=True), [item(1, "ch_1", "1.00")], file_of(tmp_path))
    assert (findings, checked) == ((), None)
    assert warning is not None


def test_overlaps_from_python_need_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same target in another batch: OverlapError and nothing sealed, until a reason is given."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    ledger = f"sqlite:{tmp_path}/l.db"

    def pay(call: payonce.Call) -> payonce.Executed:
        return payonce.Executed(reference=f"{call.batch}-{call.item.id}", billed=call.money)

    def run(batch: str, **more: Any) -> payonce.Result:
        return payonce.run(batch, [("a", Money("1.00", "USD"))], pay, ledger=ledger, **more)

    assert run("one").counts.committed == 1
    with pytest.raises(SealedError) as held:
        run("two")
    assert held.value.code == "overlap"
    assert "batch one" in held.value.problems[0].message  # type: ignore[attr-defined]
    with pytest.raises(payonce.UsageError):
        run("two", allow_overlap=" ")
    assert run("two", allow_overlap="agreed").counts.committed == 1
    assert run("two").counts.committed == 1


PAYMENTS = {"1": ("ch_1", "pi_1"), "2": ("ch_2", "pi_2"), "9": ("ch_9", "pi_9")}


class Payments(Reads):
    """Payments with two names each. ``taken`` is what the provider shows as refunded, by the payment's number."""

    def __init__(self, **taken: str) -> None:
        super().__init__()
        self.taken = {name.removeprefix("p"): Money(amount, "USD") for name, amount in taken.items()}

    async def preflight(self, item: Item, *, timeout_us: int) -> Preflight | None:
        """Fits, under both names."""
        number = item.target.partition("_")[2]
        taken = self.taken.get(number)
        return Preflight(True, touched=taken is not None, taken=taken, names=PAYMENTS[number])


def ledger_with(items: list[NewItem], **spec: Any) -> MemoryLedger:
    """A ledger that has a batch "a" with these items."""
    ledger = MemoryLedger()
    ledger.seal(BatchSpec("a", "refund", "reads", targets=True, **spec), items, seal="x", actor=Actor())
    return ledger


def known(ledger: MemoryLedger, allowed: str | None = None, **spec: Any) -> Known:
    """What it knows, for a batch "b"."""
    return Known(ledger, BatchSpec("b", "refund", "reads", targets=True, **spec), allowed)


def look(provider: Any, items: list[NewItem], known: Known, folder: Path) -> list[tuple[str | None, str]]:
    """The findings: item and code."""
    found, _, _ = asyncio.run(check_targets(provider, lambda: iter(items), file_of(folder), "i.csv", known=known))
    return [(one.value, one.code) for one in found]


def test_one_payment_under_two_names_is_an_overlap(tmp_path: Path) -> None:
    """Another batch refunded it by its charge, this one names its payment intent: held until a person allows it."""
    ledger = ledger_with([item(1, "ch_1", "25.00"), item(2, "ch_2", "30.00")])
    news = [item(1, "pi_1", "5.00"), item(2, "pi_9", "5.00")]
    at = known(ledger)
    assert look(Payments(), news, at, tmp_path) == []
    held = at.merged(Overlaps())
    assert (held.held, held.count, held.batches) == (True, 1, ("a",))
    assert "acts on ch_1, which is the same as pi_1" in held.first[0].message
    assert held.problems("i.csv")[0].line == 2
    allowed = known(ledger, "agreed")
    look(Payments(), news, allowed, tmp_path)
    assert (allowed.merged(Overlaps()).held, allowed.merged(Overlaps()).count) == (False, 1)
    elsewhere = known(ledger_with([item(1, "ch_1", "25.00")], account="acct_2"), account="acct_1")
    look(Payments(), news, elsewhere, tmp_path)
    assert elsewhere.merged(Overlaps()) == Overlaps()


def test_two_names_of_one_payment_in_one_input_are_named(tmp_path: Path) -> None:
    """Each alone may fit where both together do not, and only one name can hold the target."""
    news = [item(1, "ch_1", "5.00"), item(2, "ch_9", "5.00"), item(3, "pi_1", "5.00")]
    assert look(Payments(), news, known(MemoryLedger()), tmp_path) == [("r3", "same_target")]


def test_what_was_refunded_outside_the_ledger_is_named(tmp_path: Path) -> None:
    """Unless a batch of this ledger may have done it, under either name, or a person allows it."""
    news = [item(1, "pi_1", "5.00"), item(2, "ch_2", "5.00"), item(3, "ch_9", "5.00")]
    ledger = MemoryLedger()
    assert look(Payments(p2="1.00"), news, known(ledger), tmp_path) == [("r2", "acted_outside")]
    assert look(Payments(p2="1.00"), news, known(ledger, "agreed"), tmp_path) == []
    assert look(Payments(), news, known(ledger), tmp_path) == []
