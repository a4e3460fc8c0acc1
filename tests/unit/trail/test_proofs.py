"""Proofs, exports and keys: what is handed to outsiders, and everything that must make it fail."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from payonce.core.errors import ConfigError, UsageError
from payonce.service import trailing, trailing_export, trailing_keys
from payonce.trail import checkpoint, keys, note, proof
from tests.unit.trail.trailkit import BATCH, Books


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Books:
    """A ledger with two batches and a key. Nobody changes it."""
    books = Books(tmp_path_factory.mktemp("books"))
    books.run(120)
    books.run(40, batch="other")
    books.close()
    os.environ.pop("PAYONCE_LEDGER", None)
    trailing_keys.make(books.url, out=None, rotate=False, reason=None)
    return books


def public(books: Books) -> str:
    """The file of its public key."""
    return str(trailing.Places.of(books.url).public)


def proven(books: Books, n: int = 7, **more: Any) -> dict[str, Any]:
    """An item's proof."""
    return trailing.prove(books.url, batch=BATCH, item=f"it-{n}", **{"key": None, "kept": None, **more})


@pytest.mark.parametrize(("n", "state"), [(1, "committed"), (3, "refused"), (4, "committed"), (5, "committed")])
def test_a_proof_holds_with_the_public_key_alone(books: Books, n: int, state: str) -> None:
    """Whatever became of the item; through JSON, as a third party gets it."""
    document = orjson.loads(orjson.dumps(proven(books, n)))
    found = proof.check(document, keys.load_public(public(books)))
    assert (found["item"], found["state"]) == (f"it-{n}", state)
    assert {orjson.loads(e["event"])["type"] for e in document["context"]} == {"sealed", "worker_joined"}


def _other_amount(document: dict[str, Any]) -> None:
    document["events"][-1]["event"] = document["events"][-1]["event"].replace('"billed":"7', '"billed":"8')


def _other_path(document: dict[str, Any]) -> None:
    document["events"][0]["path"][0] = "00" * 32


def _left_out(document: dict[str, Any]) -> None:
    del document["events"][0]


def _twice(document: dict[str, Any]) -> None:
    document["events"].append(document["events"][-1])


def _other_item(document: dict[str, Any]) -> None:
    document["item"] = "it-8"


def _other_size(document: dict[str, Any]) -> None:
    lines = document["checkpoint"].split("\n")
    lines[1] = str(int(lines[1]) - 1)
    document["checkpoint"] = "\n".join(lines)


def _no_events(document: dict[str, Any]) -> None:
    document["events"] = []


def _cut(document: dict[str, Any]) -> None:
    del document["events"][0]["path"][-1]


@pytest.mark.parametrize(
    "spoil", [_other_amount, _other_path, _left_out, _twice, _other_item, _other_size, _no_events, _cut]
)
def test_a_spoilt_proof_is_refused(books: Books, spoil: Any) -> None:
    """Any change of event, path, order, item or checkpoint."""
    document = copy.deepcopy(proven(books))
    spoil(document)
    with pytest.raises(UsageError) as refused:
        proof.check(document, keys.load_public(public(books)))
    assert refused.value.code in ("bad_proof", "untrusted")


def test_a_proof_signed_by_somebody_else_is_refused(books: Books) -> None:
    """Another key of the same name proves nothing."""
    other = keys.new_key(keys.load_public(public(books))[0].name)
    with pytest.raises(UsageError, match="not by a key that was given"):
        proof.check(proven(books), [other.verifier])


def test_an_item_is_proven_under_a_kept_checkpoint(books: Books, tmp_path: Path) -> None:
    """Without the private key; one that is older than the item's last event is refused."""
    kept = tmp_path / "kept.txt"
    kept.write_text(str(trailing.make_checkpoint(books.url, key=None)))
    document = proven(books, kept=kept)
    assert proof.check(document, keys.load_public(public(books)))["ok"]
    signed = checkpoint.load(kept, keys.load_public(public(books))).last
    key = trailing.signing_key(books.url, None)
    with books_reads(books) as reads:
        from payonce.trail.verify import root_at

        early = checkpoint.Checkpoint(signed.checkpoint.origin, 5, root_at(reads, 5))
    kept.write_text(str(checkpoint.sign(early, [key])))
    with pytest.raises(UsageError) as refused:
        proven(books, kept=kept)
    assert refused.value.code == "not_covered"


def books_reads(books: Books) -> Any:
    """The trail as a context."""
    return trailing.trail(books.url)


@pytest.mark.parametrize("batch", [None, BATCH, "other"])
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_an_export_holds_offline(books: Books, tmp_path: Path, batch: str | None, suffix: str) -> None:
    """Whole or of one batch, with the totals that its events come to."""
    out = tmp_path / f"trail.{suffix}"
    made = trailing_export.write(books.url, trailing_export.Order(batch, out, None))
    found = trailing_export.check(out, public(books))
    assert found["ok"] and found["totals"] == made["totals"]
    assert set(found["totals"]) == ({batch} if batch else {BATCH, "other"})
    if batch != "other":
        assert found["totals"][BATCH]["items"]["total"] == 120


@pytest.mark.parametrize("at", [1, 2, -1])
def test_an_export_with_a_line_changed_or_left_out_is_refused(books: Books, tmp_path: Path, at: int) -> None:
    """Every line counts, also one that stands for many events."""
    out = tmp_path / "trail.jsonl"
    trailing_export.write(books.url, trailing_export.Order("other", out, None))
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join(lines[:at] + lines[at:][1:]))
    assert not trailing_export.check(out, public(books))["ok"]
    changed = lines[at].replace(b"0", b"1") if b"skip" in lines[at] else lines[at].replace(b'"at":"2', b'"at":"1')
    out.write_bytes(b"".join([*lines[:at], changed, *lines[at:][1:]]))
    try:
        assert not trailing_export.check(out, public(books))["ok"]
    except (UsageError, ValueError):
        pass


def test_an_exports_totals_cannot_be_changed(books: Books, tmp_path: Path) -> None:
    """They are computed again from the events."""
    out = tmp_path / "trail.jsonl"
    trailing_export.write(books.url, trailing_export.Order(None, out, None))
    text = out.read_bytes()
    out.write_bytes(text.replace(b'"committed":109', b'"committed":110', 1))
    assert out.read_bytes() != text and not trailing_export.check(out, public(books))["ok"]


def test_a_rotated_key_hands_the_trust_on(tmp_path: Path) -> None:
    """Both keys sign at the hand-over, old checkpoints still verify, and the trail names the new key."""
    books = Books(tmp_path)
    books.run(11)
    books.close()
    first = trailing_keys.make(books.url, out=None, rotate=False, reason=None)
    kept = trailing.Places.of(books.url).checkpoints
    kept.write_text(f"{trailing.make_checkpoint(books.url, key=None)}\n")
    second = trailing_keys.make(books.url, out=None, rotate=True, reason="a year is over")
    handed = note.parse(second["checkpoint"])
    assert all(key.signed(handed) for key in keys.load_public(public(books))) and len(handed.signatures) == 2
    found = trailing.verify_trail(books.url, trailing.Against())
    assert found.ok and found.checkpoints == 2  # the hand-over is beside the ledger
    with trailing.trail(books.url) as reads:
        bodies = [orjson.loads(body) for _, body in reads.bodies(1, 100)]
    named = [body["key"] for body in bodies if body["type"] == "trail_key"]
    assert named == [first["public"], second["public"]] and first["public"] != second["public"]


def test_a_private_key_is_kept_private(tmp_path: Path) -> None:
    """Mode 0600, never printed, never replaced; one that others can read is refused."""
    key = keys.new_key("payonce/x")
    path = tmp_path / "key"
    keys.save(key, path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert key.seed.hex() not in repr(key) and key.text() not in repr(key)
    assert keys.load_private(str(path), environ={}) == key
    assert keys.load_private("${K}", environ={"K": key.text()}) == key
    with pytest.raises(UsageError):
        keys.save(keys.new_key("payonce/x"), path)
    with pytest.raises(UsageError, match="private key"):
        keys.load_public(str(path))
    path.chmod(0o644)
    with pytest.raises(ConfigError):
        keys.load_private(str(path), environ={})


def test_a_note_of_the_go_implementation_verifies() -> None:
    """The example of golang.org/x/mod/sumdb/note: keys and signatures are the same format."""
    vkey = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    text = (
        "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n"
        "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
    )
    key = keys.parse_public(vkey)
    assert str(key) == vkey and key.signed(note.parse(text))
    assert not key.signed(note.parse(text.replace("answer", "anser")))
