"""Suite, part six: reading back: pages, events, outputs, findings, references, and what a reopened ledger shows."""

from __future__ import annotations

from payonce.core.commands import BatchCommand, Control, Landed
from payonce.core.events import canonical, leaf_hash
from payonce.core.model import Finding
from payonce.core.states import ItemEvent, ItemState
from payonce.ledger.merkle import Head
from payonce.testing.ledger_world import OPERATOR, World


class ReadingCases:
    """What a ledger shows."""

    def test_items_come_in_pages(self, world: World) -> None:
        """In input order, without a gap or an overlap; None after the last."""
        world.seal(5)
        first = world.ledger.items("refunds", limit=2)
        assert first.next_n is not None
        second = world.ledger.items("refunds", after_n=first.next_n, limit=9)
        assert [i.n for i in first.items + second.items] == [1, 2, 3, 4, 5]
        assert second.next_n is None

    def test_items_can_be_filtered_by_several_states(self, world: World) -> None:
        """In input order over all of the states named."""
        worker = world.start(6)
        for n, state in enumerate(ItemState, start=1):
            world.bring(worker, n, state)
        page = world.ledger.items("refunds", states=[ItemState.SKIPPED, ItemState.PENDING, ItemState.REFUSED])
        assert [i.state for i in page.items] == [ItemState.PENDING, ItemState.REFUSED, ItemState.SKIPPED]
        none = world.ledger.items("refunds", states=[ItemState.PLANNED], after_n=1)
        assert none.items == ()

    def test_ids_are_compared_exactly(self, world: World) -> None:
        """A near miss is no item."""
        world.seal(2)
        assert world.ledger.item("refunds", "item-1") is not None
        for near in ("ITEM-1", "item-1 ", "item", ""):
            assert world.ledger.item("refunds", near) is None
            assert world.ledger.events("refunds", item=near) == ()

    def test_status_counts_what_is_there(self, world: World) -> None:
        """Counts and money per state: planned and refused as asked, committed as billed."""
        worker = world.start(6)
        for n, state in enumerate(ItemState, start=1):
            world.bring(worker, n, state)
        status = world.ledger.status("refunds")
        assert all(status.count(state) == 1 for state in ItemState)
        assert all(status.minor("USD", state) == 1000 for state in ItemState)
        assert sum(t.items for t in status.tallies) == status.batch.items
        assert status.calls_sent == 4

    def test_the_trail_is_one_sequence(self, world: World) -> None:
        """From 1 without a gap, canonical, the same bytes every time, and hashing to the ledger's root."""
        worker = world.start(2)
        world.intend(worker, 1)
        world.seal(1, batch="other")
        world.change(worker, 1, ItemEvent.COMMIT, data={"float": 0.1, "big": 2**60, "text": "ü\n", "list": [1, None]})
        events = world.ledger.events()
        assert [e.seq for e in events] == list(range(1, len(events) + 1))
        head = Head()
        for event, body in zip(events, world.bodies(batch=None), strict=True):
            assert canonical(body) == event.body
            assert body["seq"] == event.seq
            head.append(leaf_hash(event.body))
        info = world.ledger.info()
        assert (info.events, info.root) == (len(events), head.root().hex())
        assert world.ledger.events() == events

    def test_events_are_found_by_batch_and_item(self, world: World) -> None:
        """A batch's own events and its items' ones, in pages; an item's alone."""
        worker = world.start(2)
        world.seal(1, batch="other")
        world.intend(worker, 2)
        world.change(worker, 2, ItemEvent.COMMIT)
        events = world.ledger.events("refunds")
        assert [e.n for e in events] == [None, None, None, 2, 2]
        assert {e.batch for e in events} == {"refunds"}
        assert world.types(item="item-2") == ["intent", "commit"]
        after = world.ledger.events("refunds", after_seq=events[1].seq, limit=2)
        assert after == events[2:4]
        assert world.ledger.events("refunds", item="item-2", after_seq=events[-2].seq) == events[-1:]

    def test_a_place_before_the_first_event_is_the_beginning(self, world: World) -> None:
        """Whoever asks for the last so many events of a short ledger gets all of them."""
        world.seal(2)
        known = world.ledger.events("refunds")
        assert known
        assert world.ledger.events("refunds", after_seq=-500) == known
        assert world.ledger.events(after_seq=-1) == world.ledger.events()

    def test_an_intent_names_everything_that_goes_out(self, world: World) -> None:
        """Amount, currency, key, attempt, generation, step, worker and the digest of the exact request."""
        worker = world.start(1)
        world.intend(worker, 1)
        body = world.bodies(item="item-1")[0]
        assert {k: body[k] for k in ("amount", "currency", "key", "attempt", "generation", "step", "worker")} == {
            "amount": "10.00",
            "currency": "USD",
            "key": "key-1-0-0",
            "attempt": 1,
            "generation": 0,
            "step": 0,
            "worker": worker.fence,
        }
        assert len(body["request"]) == 64

    def test_outputs_come_with_their_items(self, world: World) -> None:
        """Complete and in input order, also where there is none."""
        worker = world.start(3)
        for n in (1, 2):
            world.intend(worker, n)
        world.change(worker, 2, ItemEvent.COMMIT, output=b'{"answer":42}', kept={"tokens": 7})
        found = world.ledger.outputs("refunds")
        assert [(o.item.n, o.output, dict(o.kept)) for o in found] == [
            (1, None, {}),
            (2, b'{"answer":42}', {"tokens": 7}),
            (3, None, {}),
        ]
        assert [o.item.n for o in world.ledger.outputs("refunds", after_n=1, limit=1)] == [2]
        assert world.bodies(item="item-2")[-1]["kept"] == {"tokens": 7}

    def test_billing_lines_are_the_items_as_they_are(self, world: World) -> None:
        """Every item in input order, with what was billed where something was."""
        worker = world.start(3)
        world.intend(worker, 2)
        world.change(worker, 2, ItemEvent.COMMIT, reference="re_2")
        cells = [line for piece in world.ledger.billing("refunds") for line in _billed(piece)]
        items = world.ledger.items("refunds").items
        assert [(c[0], c[1], c[3], c[7]) for c in cells] == [(str(i.n), i.id, i.state.value, i.target) for i in items]
        billed = items[1].billed
        assert billed is not None
        assert cells[1][2:7] == ["re_2", "committed", "none", str(billed.minor), billed.currency]
        assert cells[0][2] == cells[0][5] == cells[0][6] == ""

    def test_findings_are_kept_and_in_the_trail(self, world: World) -> None:
        """Each with its item, its facts and an event of its own, in the transaction of the change."""
        worker = world.start(1)
        world.intend(worker, 1)
        finding = Finding("amount_mismatch", "item-1", {"asked": "10.00 USD", "billed": "1.00 USD"})
        world.change(worker, 1, ItemEvent.COMMIT, findings=(finding,))
        (kept,) = world.ledger.findings("refunds")
        assert (kept.kind, kept.item, dict(kept.data), kept.state) == (
            finding.kind,
            "item-1",
            dict(finding.data),
            "open",
        )
        assert kept.opened_us == world.now_us
        assert world.types(item="item-1") == ["intent", "commit", "finding"]

    def test_findings_of_a_reconciliation_come_with_a_note(self, world: World) -> None:
        """About an item or about none, in any state of the batch; the note comes after them in the trail."""
        world.start(1)
        found = (
            Finding("missing_in_ledger", None, {"reference": "re_9"}),
            Finding("amount_mismatch", "item-1", {"n": 1}),
        )
        note = Control(BatchCommand.NOTE, code="reconciled", data={"rows": 2}, findings=found)
        world.ledger.control("refunds", note, actor=OPERATOR)
        kept = world.ledger.findings("refunds")
        assert [(f.kind, f.item, dict(f.data)) for f in kept] == [(f.kind, f.item, dict(f.data)) for f in found]
        assert len({f.id for f in kept}) == 2
        assert [b["type"] for b in world.bodies()][-3:] == ["finding", "finding", "note"]
        assert not world.ledger.check()

    def test_a_finding_is_opened_once(self, world: World) -> None:
        """Several processes that end together note the same: one finding, whoever comes first, and other facts are new.
        What makes a reconciliation's finding one is its fingerprint, whatever statement showed it."""
        worker = world.start(1)
        world.intend(worker, 1)
        late = Finding("duplicate", "item-1", {"reference": "re_2"})
        world.change(worker, 1, ItemEvent.COMMIT, findings=(late,))
        shown = [Finding("amount_mismatch", "item-1", {"fingerprint": "f1", "statement": s}) for s in ("aa", "bb")]
        other = Finding("amount_mismatch", "item-1", {"fingerprint": "f2", "statement": "bb"})
        for ledger, found in ((world.open(), (late, shown[0])), (world.open(), (shown[1], other, other))):
            ledger.control("refunds", Control(BatchCommand.NOTE, code="findings", findings=found), actor=OPERATOR)
        kept = world.ledger.findings("refunds")
        assert [(f.kind, dict(f.data)) for f in kept] == [(f.kind, dict(f.data)) for f in (late, shown[0], other)]
        assert [b["type"] for b in world.bodies()].count("finding") == 3
        done = [Finding("duplicate", "item-1", {"of": kept[0].id, "state": "resolved", "reason": r}) for r in "ab"]
        for ledger, step in zip((world.open(), world.open()), done, strict=True):
            ledger.control("refunds", Control(BatchCommand.NOTE, code="findings", findings=(step,)), actor=OPERATOR)
        assert [f.data.get("reason") for f in world.ledger.findings("refunds")] == [None, None, None, "a"]

    def test_references_taken_by_any_batch_are_known(self, world: World) -> None:
        """Committed items' references of the whole ledger, and nothing else."""
        worker = world.start(2)
        world.intend(worker, 1)
        world.change(worker, 1, ItemEvent.COMMIT, reference="re_1")
        other = world.start(1, batch="other")
        world.intend(other, 1)
        world.change(other, 1, ItemEvent.COMMIT, reference="re_2")
        asked = ["re_1", "re_2", "re_3", "RE_1"]
        assert world.ledger.claimed_references("other", asked) == {"re_1", "re_2"}
        assert world.ledger.claimed_references("other", []) == frozenset()
        world.intend(worker, 2)
        world.change(worker, 2, ItemEvent.COMMIT, reference="re_3")
        assert world.ledger.claimed_references("refunds", ["re_3"]) == {"re_3"}

    def test_references_taken_on_one_target_are_known(self, world: World) -> None:
        """By committed items of any batch at the same provider that act on it; not by those on other targets."""
        worker, other = world.start(2), world.start(1, batch="other")
        for one, n, reference in ((worker, 1, "re_1"), (worker, 2, "re_2"), (other, 1, "re_3")):
            world.intend(one, n)
            world.change(one, n, ItemEvent.COMMIT, reference=reference)
        (target,) = {item.target for item in world.ledger.items("refunds").items if item.n == 1}
        (elsewhere,) = {item.target for item in world.ledger.items("refunds").items if item.n == 2}
        (same,) = {item.target for item in world.ledger.items("other").items}
        asked = ["re_1", "re_2", "re_3", "re_4"]
        expected = {"re_1", "re_3"} if same == target else {"re_1"}
        assert world.ledger.claimed_references("refunds", asked, target=target) == expected
        assert world.ledger.claimed_references("refunds", asked, target=elsewhere) == {"re_2"}
        assert world.ledger.claimed_references("refunds", asked, target="nobody") == frozenset()

    def test_open_intents_are_found_by_number(self, world: World) -> None:
        """In input order; decided and unknown numbers are left out."""
        worker = world.start(4)
        world.bring(worker, 3, ItemState.UNKNOWN)
        world.intend(worker, 1)
        world.bring(worker, 2, ItemState.COMMITTED)
        found = world.ledger.open_intents("refunds", [3, 2, 1, 4, 99])
        assert [(o.item.n, o.item.state) for o in found] == [(1, ItemState.PENDING), (3, ItemState.UNKNOWN)]

    def test_reopening_shows_everything(self, world: World) -> None:
        """What was acknowledged is there, byte for byte."""
        worker = world.start(4, budget={"USD": 5000})
        world.intend(worker, 1)
        world.bring(worker, 2, ItemState.COMMITTED)
        world.change(worker, 1, ItemEvent.UNRESOLVED, code="timeout", seen=True)

        def view() -> tuple[object, ...]:
            ledger = world.ledger
            status = ledger.status("refunds")
            return status, ledger.items("refunds"), ledger.events(), ledger.open_intents("refunds", [1]), ledger.info()

        before = view()
        world.reopen()
        assert view() == before
        assert world.change(worker, 1, ItemEvent.COMMIT) is Landed.LANDED
        world.control(BatchCommand.NOTE, reason="done", data={"k": "v"})
        world.assert_sound()


def _billed(piece: str) -> list[list[str]]:
    """The items of a piece of ``Ledger.billing``, whichever way it holds them."""
    if piece.startswith("\x1d"):
        return [list(item) for item in zip(*(column.split("\n") for column in piece[1:].split("\x1f")), strict=True)]
    cells = [line.split("\x1f") for line in piece.splitlines()]
    assert all(line.pop() == "." for line in cells), "each line ends in a point"
    return cells
