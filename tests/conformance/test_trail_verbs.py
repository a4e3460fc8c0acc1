"""The trail's own verbs, on every store: an event about the ledger, payloads beside events, erasing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import orjson
import pytest

from payonce.core.errors import UsageError
from payonce.core.keys import digest
from payonce.core.model import NewItem
from payonce.core.money import Money
from payonce.core.states import ItemEvent, ItemState
from payonce.ledger.store_reads import StoreLedger
from payonce.testing.ledger_world import BATCH, OPERATOR, World
from tests.conformance.explained import assert_explained
from tests.conformance.test_jsonl_ledger import JsonlFactory
from tests.conformance.test_ledgers import MemoryFactory, SqliteFactory
from tests.postgres import PostgresFactory


@pytest.fixture(params=["memory", "sqlite", "postgres", "jsonl"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """A ledger of each kind."""
    match request.param:
        case "memory":
            world = World(MemoryFactory())
        case "sqlite":
            world = World(SqliteFactory(tmp_path))
        case "jsonl":
            world = World(JsonlFactory(tmp_path))
        case _:
            world = World(PostgresFactory(request.getfixturevalue("postgres"), tmp_path / "marks"))
    yield world
    world.close()


def store(world: World) -> StoreLedger:
    """The ledger with the verbs of the trail."""
    return cast(StoreLedger, world.ledger)


def people() -> list[NewItem]:
    """Two items of persons."""
    return [NewItem(f"item-{n}", Money("10.00", "USD"), fields={"email": f"p{n}@x.org", "lang": "en"}) for n in (1, 2)]


def last_event(world: World, item: str | None = None) -> dict[str, object]:
    """The newest event, of an item or of the ledger."""
    events = world.ledger.events(BATCH if item else None, item=item, limit=10_000)
    body: dict[str, object] = orjson.loads(events[-1].body)
    return body


def test_an_event_about_the_ledger_is_appended(world: World) -> None:
    """With who and why, and it is part of the head."""
    before = world.ledger.info()
    seq = store(world).record("trail_key", {"key": "k", "weight": 0.5}, actor=OPERATOR, reason="new key")
    after = world.ledger.info()
    assert (seq, after.events) == (before.events + 1, before.events + 1) and after.root != before.root
    said = last_event(world)
    assert (said["type"], said["key"], said["weight"], said["reason"]) == ("trail_key", "k", "0.5", "new key")
    assert not world.ledger.check()


def test_payloads_are_in_the_event_by_their_digest_alone(world: World) -> None:
    """Both of a request and of an answer."""
    worker = world.start(people())
    world.write(worker, replace(world.intent(1), payloads={"request": b"to: p1"}))
    assert last_event(world, "item-1")["request_kept"] == digest(b"to: p1")
    world.change(worker, 1, ItemEvent.COMMIT, payloads={"response": b"hello"})
    said = last_event(world, "item-1")
    assert said["response_kept"] == digest(b"hello") and "hello" not in str(said)
    assert not world.ledger.check()
    assert_explained(world)


def test_erasing_takes_fields_and_outputs_and_leaves_an_event(world: World) -> None:
    """Only what was named, of the item that was named; the rest of the item stays."""
    worker = world.start(people())
    world.bring(worker, 1, ItemState.COMMITTED)
    world.bring(worker, 2, ItemState.COMMITTED)
    before = world.item(1)
    assert store(world).erase(BATCH, ["item-1"], fields=["email"], actor=OPERATOR, reason="asked") == 1
    assert world.item(1) == replace(before, fields={"lang": "en", "$erased": ["email"]})
    assert world.item(2).fields == {"email": "p2@x.org", "lang": "en"}
    assert world.ledger.outputs(BATCH)[0].output is None
    said = last_event(world, "item-1")
    assert (said["type"], said["fields"], said["reason"]) == ("erased", ["email"], "asked")
    world.reopen()
    assert world.item(1).fields == {"lang": "en", "$erased": ["email"]}
    assert not world.ledger.check()
    assert_explained(world)


@pytest.mark.parametrize("state", [ItemState.PLANNED, ItemState.PENDING, ItemState.UNKNOWN])
def test_an_item_that_may_still_be_sent_is_never_erased(world: World, state: ItemState) -> None:
    """And then none of the others is: all or nothing."""
    worker = world.start(people())
    world.bring(worker, 1, ItemState.COMMITTED)
    world.bring(worker, 2, state)
    events = world.ledger.info().events
    with pytest.raises(UsageError):
        store(world).erase(BATCH, ["item-1", "item-2"], fields=None, actor=OPERATOR, reason="asked")
    assert world.item(1).fields["email"] == "p1@x.org" and world.ledger.info().events == events


@pytest.mark.parametrize(("items", "reason"), [(["item-1"], " "), (["nobody"], "asked")])
def test_erasing_needs_a_reason_and_an_item(world: World, items: list[str], reason: str) -> None:
    """Neither is guessed."""
    worker = world.start(people())
    world.bring(worker, 1, ItemState.COMMITTED)
    with pytest.raises(UsageError):
        store(world).erase(BATCH, items, fields=None, actor=OPERATOR, reason=reason)
