"""A provider that counts its references anew for each charge: one reference then names many executions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import payonce

FIVE = payonce.Money("5.00", "USD")


class Far:
    """Pays, and loses the answer of some items; each target's executions are numbered from 1."""

    def __init__(self, lost: set[str]) -> None:
        self.paid: dict[str, list[str]] = {}
        self.lost = lost

    def find(self, call: payonce.Call) -> payonce.Found:
        """Those of the call's target, by their number."""
        shown = enumerate(self.paid.get(call.item.target, []), 1)
        return payonce.Found(tuple(payonce.Execution(str(n), money=FIVE) for n, _ in shown))

    def pay(self, call: payonce.Call) -> payonce.Executed:
        """Executes always."""
        paid = self.paid.setdefault(call.item.target, [])
        paid.append(call.item.id)
        if call.item.id in self.lost:
            raise ConnectionResetError("the answer is lost")
        return payonce.Executed(reference=str(len(paid)), billed=FIVE)


def test_an_execution_whose_reference_another_charge_has_too_is_never_sent_again(tmp_path: Path) -> None:
    """A lost answer is looked up; what it shows may be the item's own although another target's item is committed with
    the same reference: a person decides, nothing is paid twice."""
    far = Far(lost={"second"})

    @payonce.operation(lookup=far.find, echoes=False, lag="0s", max_execution="100ms", timeout="1s")
    def pay(call: payonce.Call) -> payonce.Executed:
        return far.pay(call)

    items = [payonce.Item("first", FIVE, target="ch_1"), payonce.Item("second", FIVE, target="ch_2")]
    result = payonce.run("b", items, pay, kind="refund", ledger=f"sqlite:{tmp_path / 'l.db'}", concurrency=1)
    assert far.paid == {"ch_1": ["first"], "ch_2": ["second"]}, "each once"
    assert (result.counts.committed, result.counts.unknown) == (1, 1)
    (unknown,) = result.items("unknown")
    assert unknown.code == "ambiguous"


def test_a_guarded_call_is_not_made_again_either(tmp_path: Path) -> None:
    """The same of ``once``: the second entry asks, and says that a person has to look."""
    far, where = Far(lost={"second"}), f"sqlite:{tmp_path / 'l.db'}"

    async def start(item: str, target: str) -> None:
        promises = {"lookup": far.find, "echoes": False, "lag": "0s", "max_execution": "100ms"}
        async with payonce.once(
            where, batch="b", item=item, money=FIVE, target=target, timeout="1s", **promises
        ) as call:
            if not call.done:
                call.executed(far.pay(call).reference)  # type: ignore[arg-type]

    asyncio.run(start("first", "ch_1"))
    with pytest.raises(ConnectionResetError):
        asyncio.run(start("second", "ch_2"))
    with pytest.raises(payonce.ItemUnknown):
        asyncio.run(start("second", "ch_2"))
    assert far.paid == {"ch_1": ["first"], "ch_2": ["second"]}, "each once"
