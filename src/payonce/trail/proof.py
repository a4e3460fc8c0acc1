"""The proof of one item: its events, the way from each to a signed root, and the checkpoint. One JSON document that needs
nothing else but the public key.

    {"format": "payonce-proof/1", "ledger", "batch", "item", "checkpoint": signed note,
     "events": [{"event": canonical JSON text, "path": [hex, ...]}], "context": [the same]}

``context`` are the events that say what the batch was sealed as and who the workers were. A proof shows that these events
are in the trail, up to the checkpoint; it cannot show that no later event follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from payonce.core.errors import UsageError
from payonce.core.events import leaf_hash
from payonce.ledger.trail_port import TrailReads
from payonce.trail.checkpoint import Signed, trusted
from payonce.trail.explain import EDGES, STATES
from payonce.trail.keys import VerifierKey, signer_of
from payonce.trail.note import parse
from payonce.trail.tree import TrailHashes, Tree, inclusion_holds

FORMAT: Final = "payonce-proof/1"
Entry = tuple[int, bytes]


def prove(reads: TrailReads, *, number: int, batch: str, n: int, item: str, signed: Signed) -> dict[str, Any]:
    """The proof of one item under a signed checkpoint, checked before it is handed out.

    Raises UsageError ``not_covered`` where the checkpoint is older than the item's last event, ``proof_fails`` where
    the ledger's own hashes do not lead to the checkpoint: the trail was changed.
    """
    size = signed.checkpoint.size
    events = reads.about(number, n)
    late = [seq for seq, _ in events if seq > size]
    if late or not events:
        raise UsageError(
            f"the checkpoint over {size} events does not cover item {item}"
            + (f": its last event is {late[-1]}" if late else ", which has no event yet"),
            code="not_covered",
            hint="make a new one: payonce trail checkpoint",
        )
    tree = Tree(TrailHashes(reads))
    context = _context(reads.about(number, 0), events, size)
    document = {
        "format": FORMAT,
        "ledger": reads.ledger_id(),
        "batch": batch,
        "item": item,
        "checkpoint": str(signed),
        "events": [_entry(tree, entry, signed) for entry in events],
        "context": [_entry(tree, entry, signed) for entry in context],
    }
    return document


def _entry(tree: Tree, entry: Entry, signed: Signed) -> dict[str, Any]:
    seq, body = entry
    size, root = signed.checkpoint.size, signed.checkpoint.root
    path = tree.inclusion(seq - 1, size)
    if not inclusion_holds(leaf_hash(body), seq - 1, size=size, path=path, root=root):
        raise UsageError(
            f"event {seq} does not lead to the checkpoint over {size} events",
            code="proof_fails",
            hint="the trail or the checkpoint was changed: payonce trail verify --checkpoints FILE",
        )
    return {"event": body.decode(), "path": [node.hex() for node in path]}


def _context(about: Sequence[Entry], events: Sequence[Entry], size: int) -> list[Entry]:
    """How the batch was sealed, and who the workers were that the item's events name."""
    workers = {orjson.loads(body).get("worker") for _, body in events} - {None}
    wanted = []
    for seq, body in about:
        said = orjson.loads(body)
        sealed = said["type"] in ("sealed", "amended")
        if seq <= size and (sealed or (said["type"] == "worker_joined" and said.get("worker") in workers)):
            wanted.append((seq, body))
    return wanted


def check(document: Any, keys: Sequence[VerifierKey]) -> dict[str, Any]:
    """Checks a proof with public keys alone and says what it proves.

    Raises UsageError ``bad_proof`` where it proves nothing and says why, ``untrusted`` where the checkpoint is signed by
    no given key.
    """
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _bad("this is no proof of payonce")
    try:
        signed = trusted(parse(document["checkpoint"]), keys)
        events = [_checked(entry, signed) for entry in document["events"]]
        context = [_checked(entry, signed) for entry in document["context"]]
        batch, item = document["batch"], document["item"]
    except (KeyError, TypeError, ValueError) as error:
        raise _bad("a part of it is missing or malformed") from error
    if not events or any((said.get("batch"), said.get("item")) != (batch, item) for said in events):
        raise _bad("an event is about another item, or there is none")
    if any(said.get("batch") != batch for said in context):
        raise _bad("an event beside the item's is about another batch")
    signer = signer_of(signed.note, keys)
    return {
        "ok": True,
        "ledger": document.get("ledger"),
        "batch": batch,
        "item": item,
        "state": _state(events),
        "commit": next((_money(said) for said in reversed(events) if said.get("type") == "commit"), None),
        "events": len(events),
        "checkpoint_events": signed.checkpoint.size,
        "signed_by": str(signer),
    }


def _checked(entry: dict[str, Any], signed: Signed) -> dict[str, Any]:
    """One event, whose place in the tree is the number that its own body says."""
    body = entry["event"].encode()
    said = orjson.loads(body)
    path = [bytes.fromhex(node) for node in entry["path"]]
    size, root = signed.checkpoint.size, signed.checkpoint.root
    if not inclusion_holds(leaf_hash(body), said["seq"] - 1, size=size, path=path, root=root):
        raise _bad(f"event {said['seq']} is not under the signed root: it, its path or the checkpoint was changed")
    assert isinstance(said, dict), "a body with a number is an object"
    return said


def _state(events: Sequence[dict[str, Any]]) -> str:
    """What the events lead to by the transition table. Raises UsageError where some were left out or put in."""
    state, last = 0, 0
    for said in events:
        if said["seq"] <= last:
            raise _bad("the events are not in sequence")
        last = said["seq"]
        after = EDGES.get((state, said["type"]))
        if after is not None:
            state = after
        elif said["type"] != "finding" and not said["type"].startswith(("erased", "reconcil")):
            raise _bad(f"event {last} ({said['type']}) cannot follow what is before it: an event was left out")
    return STATES[state].value


def _money(said: dict[str, Any]) -> dict[str, Any]:
    """What a commit says of the money."""
    names = ("seq", "at", "reference", "amount", "currency", "billed", "billed_currency", "settlement")
    return {name: said[name] for name in names if name in said}


def _bad(why: str) -> UsageError:
    return UsageError(f"the proof does not hold: {why}", code="bad_proof", hint="ask for a new one")
