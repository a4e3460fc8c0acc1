"""Webhooks as files: signed or refused, in any order, as often as they come; only settlement ever changes."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payonce.core.commands import Change, Landed
from payonce.core.errors import UsageError
from payonce.core.states import ItemEvent, Settlement
from payonce.providers.official.facts import settled
from tests.unit.settling.settlekit import (
    ADYEN_KEY,
    Desk,
    adyen_event,
    paypal_event,
    stripe_event,
    stripe_signed,
)

SETTLEMENTS = st.sampled_from(list(Settlement))


@given(SETTLEMENTS, SETTLEMENTS, SETTLEMENTS)
def test_the_order_of_facts_makes_no_difference(a: Settlement, b: Settlement, c: Settlement) -> None:
    """Commutative, associative, idempotent: late, early and repeated events are harmless."""
    assert settled(a, b) is settled(b, a)
    assert settled(a, settled(b, c)) is settled(settled(a, b), c)
    assert settled(a, a) is a


def test_a_refund_that_fails_after_it_succeeded_came_back(tmp_path: Path) -> None:
    """Whatever order the files are read in, and however often."""
    told = [stripe_signed(stripe_event(word, event=f"evt_{word}")) for word in ("pending", "succeeded", "failed")]
    for order in itertools.permutations(told):
        desk = Desk.of(tmp_path)
        path = desk.file("events.jsonl", *order, *order)
        done = desk.settle(path)
        assert desk.settlement() == "returned"
        assert done.left["known already"] >= 3
        assert desk.settle(path).changed == {}
        assert desk.ledger.check() == ()


def test_each_change_is_an_event_with_its_source(tmp_path: Path) -> None:
    """Who, why, from which webhook, and what was known before; a return opens a finding; nothing becomes planned."""
    desk = Desk.of(tmp_path)
    desk.settle(desk.file("a.jsonl", stripe_signed(stripe_event("succeeded", event="evt_ok"))))
    desk.settle(desk.file("b.jsonl", stripe_signed(stripe_event("failed", event="evt_bad"))))
    first, second = desk.events()
    assert (first["data"]["event"], first["data"]["was"], first["settlement"]) == ("evt_ok", "pending", "succeeded")
    assert (second["data"]["event"], second["data"]["was"], second["settlement"]) == (
        "evt_bad",
        "succeeded",
        "returned",
    )
    assert second["reason"] == "webhook evt_bad"
    assert [finding.kind for finding in desk.ledger.findings("b")] == ["status_mismatch"]
    item = desk.ledger.item("b", "r1")
    assert item is not None and item.state == "committed" and item.reference == "ref-1"


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (stripe_event("succeeded", metadata={"payonce_item": "r1", "payonce_batch": "c"}), "another batch's"),
        ({**stripe_event("succeeded"), "livemode": True}, "of the other mode"),
        (stripe_event("succeeded", amount=1), "over another amount"),
        (stripe_event("succeeded", id="re_9", metadata={}), "of no item"),
        (stripe_event("succeeded", number=3), "not committed yet"),
        (stripe_event("succeeded", object="charge"), "about something else"),
    ],
)
def test_what_is_not_plainly_ours_changes_nothing(tmp_path: Path, event: dict[str, object], why: str) -> None:
    """It is counted with its reason, and a person is told where something is odd."""
    desk = Desk.of(tmp_path)
    done = desk.settle(desk.file("e.jsonl", stripe_signed(event)))
    assert dict(done.left) == {why: 1}
    assert desk.events() == []


def test_an_event_of_an_unknown_item_says_what_to_do(tmp_path: Path) -> None:
    """It decides nothing by itself: the command that a person may give is named, with reference, amount and source."""
    desk = Desk.of(tmp_path)
    unknown = Change(3, ItemEvent.UNDECIDED, code="no_answer", message="nobody answered")
    assert desk.ledger.write(desk.worker, [unknown]) == (Landed.LANDED,)
    done = desk.settle(desk.file("e.jsonl", stripe_signed(stripe_event("succeeded", number=3))))
    assert dict(done.left) == {"not committed yet": 1}
    assert done.notes[0].endswith(
        'payonce resolve b r3 --as committed --reference ref-3 --amount 12.50 --reason "webhook evt_1"'
    )
    item = desk.ledger.item("b", "r3")
    assert item is not None and item.state == "unknown"


def test_a_wrong_signature_stops_everything(tmp_path: Path) -> None:
    """All files are checked before the first change."""
    desk = Desk.of(tmp_path)
    good, bad = stripe_signed(stripe_event("succeeded")), stripe_signed(stripe_event("failed"), secret="whsec_other")
    with pytest.raises(UsageError, match="bad_signature") as caught:
        desk.settle(desk.file("e.jsonl", good, bad))
    assert "line 2" in str(caught.value)
    assert desk.events() == []
    changed = {**good, "body": good["body"].replace("ref-1", "ref-2")}
    with pytest.raises(UsageError, match="bad_signature"):
        desk.settle(desk.file("f.jsonl", changed))
    with pytest.raises(UsageError, match="bad_signature"):
        desk.settle(desk.file("raw.jsonl", stripe_event("succeeded")))
    with pytest.raises(UsageError, match="missing_variable"):
        desk.settle(desk.file("g.jsonl", good), environ={})


def test_unsigned_files_need_a_persons_word(tmp_path: Path) -> None:
    """PayPal's cannot be checked at all."""
    desk = Desk.of(tmp_path, "paypal")
    path = desk.file("e.jsonl", paypal_event("COMPLETED"))
    with pytest.raises(UsageError, match="unverifiable_events"):
        desk.settle(path)
    assert desk.settle(path, unsigned=True).changed == {"succeeded": 1}
    assert desk.settlement() == "succeeded"


def test_adyen_tells_success_then_failure_then_reversal(tmp_path: Path) -> None:
    """REFUND, REFUND_FAILED, REFUNDED_REVERSED; each notification's own signature."""
    desk = Desk.of(tmp_path, "adyen")
    assert desk.settle(desk.file("a.jsonl", adyen_event("REFUND", "true"))).changed == {"succeeded": 1}
    assert desk.settle(desk.file("b.jsonl", adyen_event("REFUND_FAILED", "true"))).changed == {"returned": 1}
    refused = Desk.of(tmp_path, "adyen")
    assert refused.settle(refused.file("c.jsonl", adyen_event("REFUND", "false"))).changed == {"failed": 1}
    assert refused.settle(refused.file("d.jsonl", adyen_event("CAPTURE", "true"))).left == {"about something else": 1}
    forged = adyen_event("REFUND", "true", key=ADYEN_KEY[::-1])
    with pytest.raises(UsageError, match="bad_signature"):
        refused.settle(refused.file("e.jsonl", forged))


def test_adyens_signature_is_the_sdks(tmp_path: Path) -> None:
    """The same event passes the check of Adyen's official library."""
    from Adyen.util import is_valid_hmac_notification

    assert is_valid_hmac_notification(adyen_event("REFUND", "true"), ADYEN_KEY)


def test_stripes_signature_is_the_sdks() -> None:
    """The same event passes the check of Stripe's official library."""
    import stripe

    signed = stripe_signed(stripe_event("succeeded"))
    header = signed["headers"]["Stripe-Signature"]
    assert stripe.WebhookSignature.verify_header(signed["body"], header, "whsec_marked_secret", tolerance=None)


def test_a_folder_is_read_by_name_and_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    """Single events, lists and lines; other files are left alone."""
    folder = tmp_path / "hooks"
    folder.mkdir()
    desk = Desk.of(folder)
    desk.file("1.json", stripe_signed(stripe_event("pending")))
    desk.file("2.jsonl", stripe_signed(stripe_event("succeeded", number=2)))
    (folder / "readme.txt").write_text("not an event")
    assert desk.settle(folder, dry_run=True).changed == {"succeeded": 1}
    assert desk.events() == []
    assert desk.settle(folder).changed == {"succeeded": 1}
    assert desk.settlement("r2") == "succeeded"


@pytest.mark.parametrize(
    ("text", "code"), [("{", "bad_event_file"), ("{}", "bad_event_file"), ('{"headers": {}}', "bad_event_file")]
)
def test_files_that_are_no_events_are_refused(tmp_path: Path, text: str, code: str) -> None:
    """Rather than counted as nothing to do."""
    desk = Desk.of(tmp_path)
    path = tmp_path / "e.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=code):
        desk.settle(path, unsigned=True)
    with pytest.raises(UsageError, match="no_such_file"):
        desk.settle(tmp_path / "missing.json")
