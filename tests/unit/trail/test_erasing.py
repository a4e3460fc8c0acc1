"""Erasing what is personal: the trail still verifies, the event says who and why, and nothing is left in the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from payonce.core.commands import Change
from payonce.core.errors import UsageError
from payonce.core.model import BatchSpec, Request
from payonce.core.payloads import HIDDEN, PayloadPolicy, default_for
from payonce.core.states import ItemEvent
from payonce.ledger import store_trail
from tests.unit.trail.trailkit import ACTOR, BATCH, Books, commit, intent, new_item

_NOBODY_WORKS = "UPDATE workers SET lease_until_us = 0"
SECRET = b'{"customer":"Erika Mustermann"}'


@pytest.fixture
def books(tmp_path: Path) -> Books:
    """Three items, two committed with a kept answer, one still planned."""
    books = Books(tmp_path)
    books.seal(3)
    worker = books.start()
    books.write(worker, [replace(intent(1), payloads={"request": b'{"to":"a1@example.com"}'}), intent(2)])
    books.write(worker, [replace(commit(1), payloads={"response": SECRET}), commit(2)])
    return books


def test_kept_payloads_are_verified(books: Books) -> None:
    """A payload that was changed is not the one whose digest is in its event."""
    assert books.verify().ok
    books.tamper("UPDATE payloads SET body = x'7b7d' WHERE kind = 'response'")
    assert [fault.code for fault in books.verify().faults] == ["payload_changed"]


def test_erasing_leaves_the_trail_whole_and_nothing_in_the_file(books: Books) -> None:
    """Fields, payloads and outputs go; digests, ids and amounts stay; an event says who and why."""
    assert books.ledger.erase(BATCH, ["it-1"], fields=None, actor=ACTOR, reason="request 17") == 1
    event = orjson.loads(books.ledger.events(BATCH, item="it-1")[-1].body)
    assert (event["type"], event["reason"], event["actor"]["user"], event["fields"]) == (
        "erased",
        "request 17",
        "ops",
        ["email", "name"],
    )
    found = books.verify()
    assert found.ok and not found.limits
    item = books.ledger.item(BATCH, "it-1")
    assert item is not None and item.fields == {"$erased": ["email", "name"]} and item.reference == "re-1"
    books.close()
    files = b"".join(path.read_bytes() for path in books.path.parent.glob("payonce.db*") if path.is_file())
    for gone in (b"Mustermann", b"a1@example.com", "Zoë 1".encode()):
        assert gone not in files
    assert b"a2@example.com" in files


@pytest.mark.parametrize("length", [10, 9_000])
def test_requests_that_went_leave_nothing_in_the_file(tmp_path: Path, length: int) -> None:
    """A decided item's request is no longer in the ledger, but was: its place in the file is overwritten too, within a
    page or in pages of its own; and so is what an item's row was before it grew. The file does not grow for it."""
    books = Books(tmp_path)
    books.seal(300)
    worker = books.start()
    numbers = range(1, 300)
    body = b"<" + b"x" * length
    requests = (replace(intent(n), request=Request("POST", "/p", body + b"Erika-%d>" % n)) for n in numbers)
    books.write(worker, requests)
    books.write(worker, (commit(n) for n in numbers))
    books.ledger.leave(worker)
    books.ledger.close()
    size = books.path.stat().st_size
    assert b"Erika-7>" in books.path.read_bytes() or length == 10
    books.ledger = books.open()
    for _ in range(3):
        books.ledger.erase(BATCH, [f"it-{n}" for n in numbers], fields=None, actor=ACTOR, reason="request 18")
    books.close()
    files = b"".join(path.read_bytes() for path in books.path.parent.glob("payonce.db*") if path.is_file())
    assert b"Erika-" not in files and b"a7@example.com" not in files and b"a300@example.com" in files
    assert books.path.stat().st_size < size + 400_000  # the events of the erasures
    assert books.verify().ok


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE items SET minor = minor + 1 WHERE id = 'it-2'",
        "UPDATE items SET target = 'someone-else' WHERE id = 'it-3'",
        "UPDATE items SET fields = '{}' WHERE id = 'it-2'",
        "UPDATE items SET minor = minor + 1 WHERE id = 'it-1'",
        "UPDATE items SET target = 'someone-else' WHERE id = 'it-1'",
        "UPDATE items SET fields = '{}' WHERE id = 'it-1'",
    ],
)
def test_after_an_erasure_all_else_under_the_seal_is_still_checked(books: Books, change: str) -> None:
    """Amounts, targets and fields of the others, and of the erased item what is left of it."""
    books.ledger.erase(BATCH, ["it-1"], fields=["email"], actor=ACTOR, reason="asked")
    books.ledger.erase(BATCH, ["it-1"], fields=None, actor=ACTOR, reason="asked again")
    assert books.verify().ok
    books.tamper(change)
    faults = books.verify().faults
    assert any("left by the erasure of event" in fault.message for fault in faults), faults


def test_an_erasure_covers_no_change_up(books: Books) -> None:
    """Whoever changed an amount and then erases: the items are compared with their seal first, and nothing is erased."""
    books.tamper("UPDATE items SET minor = minor + 1 WHERE id = 'it-2'", _NOBODY_WORKS)
    books.ledger = books.open()
    with pytest.raises(UsageError) as refused:
        books.ledger.erase(BATCH, ["it-1"], fields=None, actor=ACTOR, reason="asked")
    assert refused.value.code == "trail_changed"
    item = books.ledger.item(BATCH, "it-1")
    assert item is not None and item.fields["email"] == "a1@example.com"


def test_what_an_earlier_payonce_erased_is_told_apart(books: Books, monkeypatch: pytest.MonkeyPatch) -> None:
    """It wrote no digest over what was left: that is said. The next erasure writes one, which holds from then on."""
    with monkeypatch.context() as patched:
        patched.setattr(store_trail, "reseal", lambda *_: [])
        books.ledger.erase(BATCH, ["it-1"], fields=None, actor=ACTOR, reason="asked")
    found = books.verify()
    assert found.ok and "fields of 1 of them were erased" in found.limits[0]
    books.ledger.erase(BATCH, ["it-2"], fields=None, actor=ACTOR, reason="asked")
    found = books.verify()
    assert found.ok and "whether items number 1 to 3 of batch refunds were as sealed when" in found.limits[0]
    books.tamper("UPDATE items SET minor = minor + 1 WHERE id = 'it-3'")
    assert not books.verify().ok


def test_a_field_made_to_look_erased_is_no_excuse(books: Books) -> None:
    """Somebody wrote by hand what an erasure leaves, so that the seal could not be checked: no event says that it was."""
    books.tamper("""UPDATE items SET fields = '{"$erased":["email"]}' WHERE id = 'it-3'""", _NOBODY_WORKS)
    books.ledger = books.open()
    with pytest.raises(UsageError) as refused:
        books.ledger.erase(BATCH, ["it-1"], fields=None, actor=ACTOR, reason="asked")
    assert refused.value.code == "trail_changed"


def test_items_of_a_batch_that_grew_are_resealed_under_their_own_event(tmp_path: Path) -> None:
    """One of several seals is over what was erased; the others stand as they were."""
    books = Books(tmp_path)
    spec = BatchSpec("grown", "payout", "python")
    for numbers in ([1], [2, 3], [4]):
        books.ledger.amend(spec, [new_item(n) for n in numbers], seal=None, actor=ACTOR)
    worker = books.start(batch="grown")
    books.write(worker, [intent(2)])
    books.write(worker, [commit(2)])
    books.ledger.erase("grown", ["it-2"], fields=None, actor=ACTOR, reason="asked")
    said = [orjson.loads(event.body) for event in books.ledger.events("grown")]
    resealed, sealed = [one for one in said if one["type"] == "resealed"], [one for one in said if "seal" in one]
    assert len(resealed) == 1 and resealed[0]["event"] == sealed[1]["seq"]
    assert books.verify().ok
    books.tamper("UPDATE items SET minor = minor + 1 WHERE id = 'it-3'")
    texts = [fault.message for fault in books.verify().faults]
    assert any("items number 2 to 3" in text for text in texts), texts


def test_named_fields_alone_are_erased(books: Books) -> None:
    """The others stay."""
    books.ledger.erase(BATCH, ["it-2"], fields=["email"], actor=ACTOR, reason="asked")
    item = books.ledger.item(BATCH, "it-2")
    assert item is not None and item.fields == {"name": "Zoë 2", "$erased": ["email"]}


def test_an_item_that_may_still_be_sent_is_not_erased(books: Books) -> None:
    """It needs its fields; and then none of the items named is."""
    with pytest.raises(UsageError) as refused:
        books.ledger.erase(BATCH, ["it-1", "it-3"], fields=None, actor=ACTOR, reason="asked")
    assert refused.value.code == "item_open"
    item = books.ledger.item(BATCH, "it-1")
    assert item is not None and item.fields["name"] == "Zoë 1"


def test_an_erasure_that_no_event_says_is_found(books: Books) -> None:
    """Somebody emptied the fields and the output by hand."""
    books.tamper(
        'UPDATE items SET fields = \'{"$erased":["email","name"]}\' WHERE id = \'it-1\'',
        "UPDATE outputs SET output = NULL",
    )
    assert {fault.code for fault in books.verify().faults} == {"unexplained", "payload_changed"}


def test_a_payload_cannot_be_changed_through_the_store(books: Books) -> None:
    """The database refuses anything but erasing."""
    import sqlite3

    db = sqlite3.connect(books.path)
    for statement in ("UPDATE payloads SET body = x'00'", "DELETE FROM payloads"):
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(statement)
    db.close()


@pytest.mark.parametrize(
    ("policy", "raw", "kept"),
    [
        (PayloadPolicy(), b'{"a":1}', None),
        (PayloadPolicy("full"), b'{"a":1}', b'{"a":1}'),
        (PayloadPolicy("full"), b'{"a":1,"client_secret":"s"}', b'{"a":1,"client_secret":"[redacted]"}'),
        (PayloadPolicy("full"), b"not json", b"not json"),
        (PayloadPolicy("redacted"), b"not json", None),
        (PayloadPolicy("redacted"), b'{"email":"x","id":"re_1"}', b'{"email":"[redacted]","id":"re_1"}'),
        (PayloadPolicy("redacted", show=("email",)), b'{"email":"x"}', b'{"email":"x"}'),
        (PayloadPolicy("redacted", hide=("meta.ref",)), b'{"meta":{"ref":"x"}}', b'{"meta":{"ref":"[redacted]"}}'),
        (PayloadPolicy("redacted"), b"charge=ch_1&email=x%40y", b"charge=ch_1&email=%5Bredacted%5D"),
        (PayloadPolicy("full", show=("api_key",)), b'{"api_key":"k"}', b'{"api_key":"[redacted]"}'),
        (PayloadPolicy("full"), b"\xff\xfe", None),
        (PayloadPolicy("full"), b"", None),
    ],
)
def test_what_a_policy_keeps(policy: PayloadPolicy, raw: bytes, kept: bytes | None) -> None:
    """Nothing, a redacted copy, or all; a secret never."""
    assert policy.kept(raw) == kept and HIDDEN == "[redacted]"


def test_the_default_suits_the_operation() -> None:
    """Digests for money, full answers where the answer is what was paid for."""
    assert (default_for("refund").keep, default_for("payout").keep, default_for("call").keep) == (
        "digest",
        "digest",
        "full",
    )


def test_a_change_without_payloads_says_nothing_of_them() -> None:
    """The field is empty by default, and so is the event."""
    assert not Change(1, ItemEvent.COMMIT).payloads
