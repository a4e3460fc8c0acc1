"""Cancelling a large batch: ended at once, its items skipped in bounded transactions."""

from __future__ import annotations

import pytest

from payonce.core.commands import BatchCommand, Control, Intend, Landed
from payonce.core.model import Actor, BatchSpec, NewItem, Request
from payonce.core.states import BatchState, ItemEvent, ItemState
from payonce.ledger import store_batches
from payonce.ledger.memory import MemoryLedger
from payonce.service.operating import Operator


def sealed(items: int) -> MemoryLedger:
    """A batch of that many planned items."""
    store = MemoryLedger()
    news = [NewItem(f"r{k}", None, target=f"t{k}") for k in range(items)]
    store.seal(BatchSpec("b", "call", "simulator", targets=True), news, seal="x", actor=Actor())
    return store


def test_every_item_is_skipped_however_many_parts_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator's cancel goes on until nothing is planned, one event for each part and each item."""
    monkeypatch.setattr(store_batches, "_CANCEL_AT_MOST", 3)
    monkeypatch.setattr(store_batches, "_CANCEL_AT_ONCE", 2)
    store = sealed(11)
    Operator(store, Actor()).cancel("b", reason="wrong file")
    status = store.status("b")
    assert (status.count(ItemState.PLANNED), status.count(ItemState.SKIPPED)) == (0, 11)
    bodies = [event.body for event in store.events("b", limit=1000)]
    assert sum(b'"type":"skip"' in body for body in bodies) == 11
    assert sum(b'"type":"cancelled"' in body for body in bodies) == 3


def test_one_part_ends_all_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first transaction the batch is cancelled, and no intent lands; the same command later
    skips the rest."""
    monkeypatch.setattr(store_batches, "_CANCEL_AT_MOST", 2)
    monkeypatch.setattr(store_batches, "_CANCEL_AT_ONCE", 2)
    store = sealed(5)
    worker = store.join("b", actor=Actor(), lease_us=10**9)
    found = store.control("b", Control(BatchCommand.CANCEL), actor=Actor())
    assert found.state is BatchState.CANCELLED
    assert store.status("b").count(ItemState.PLANNED) == 3
    (item, *_) = store.planned(worker, limit=10)
    request = Request("POST", "/v1/calls")
    intent = Intend(item.n, ItemEvent.INTENT, 0, 0, None, request, send_by_us=10**18, deadline_us=10**18)
    assert store.write(worker, [intent]) == (Landed.NOT_RUNNING,)
    Operator(store, Actor()).cancel("b")
    assert store.status("b").count(ItemState.PLANNED) == 0
