"""What a front end may do with a trail: keys, checkpoints, verifying, proving, exporting. Nothing here calls a provider.

The trail's key and its own checkpoints live beside the ledger by default (``LEDGER.key``, ``LEDGER.key.pub``,
``LEDGER.checkpoints``). That is a beginning: what protects are the copies of public key and checkpoints that are kept
elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from payonce.core.errors import LedgerError, UsageError
from payonce.ledger.connect import connect, connect_trail, path_of
from payonce.ledger.place import state_folder
from payonce.ledger.postgres_address import is_postgres, parse
from payonce.ledger.store_reads import StoreLedger
from payonce.ledger.trail_port import TrailReads
from payonce.service.opening import misspelt
from payonce.trail import checkpoint, keys, proof
from payonce.trail.checkpoint import Checkpoint, Kept, Signed, origin_of
from payonce.trail.verify import Verified, verify


@dataclass(frozen=True, slots=True)
class Places:
    """Where a ledger's own key, public keys and checkpoints are."""

    key: Path
    public: Path
    checkpoints: Path

    @classmethod
    def of(cls, url: str) -> Places:
        """Beside the ledger's file; of a ledger on a server, in the user's state folder, under its address's name."""
        path = _in_state_folder(url) if is_postgres(url) else path_of(url)
        beside = [path.with_name(path.name + end) for end in (".key", ".key.pub", ".checkpoints")]
        return cls(*beside)


def _in_state_folder(url: str) -> Path:
    folder = state_folder()
    if folder is None:
        raise UsageError(
            "there is no folder for this ledger's key and checkpoints",
            code="no_key",
            hint="name the key and the checkpoints' file, or set XDG_STATE_HOME",
        )
    return folder / re.sub(r"[^A-Za-z0-9._-]+", "_", parse(url).shown.partition("://")[2])


@contextmanager
def trail(url: str) -> Iterator[TrailReads]:
    """The trail of a ledger, read-only. Raises UsageError where there is none, LedgerError where it cannot be read."""
    try:
        reads = connect_trail(url)
    except LedgerError as error:
        raise misspelt(error) from None
    try:
        yield reads
    finally:
        reads.close()


@contextmanager
def writable(url: str) -> Iterator[StoreLedger]:
    """The ledger, to write to its trail. Raises UsageError where there is none, LedgerError where it cannot be written."""
    try:
        ledger = connect(url, create=False)
    except LedgerError as error:
        raise misspelt(error) from None
    try:
        yield ledger
    finally:
        ledger.close()


def signing_key(url: str, place: str | None) -> keys.SigningKey:
    """The private key named, or the ledger's own. Raises UsageError where there is none."""
    return keys.load_private(place or str(Places.of(url).key), environ=os.environ)


def public_keys(url: str | None, place: str | None) -> tuple[keys.VerifierKey, ...]:
    """The public keys named, or the ledger's own."""
    if place is None:
        assert url is not None, "without a ledger the key is named"
        place = str(Places.of(url).public)
    return keys.load_public(place)


def make_checkpoint(url: str, *, key: str | None) -> Signed:
    """A signed checkpoint of the trail as it is now. The events are not hashed again: `payonce trail verify` does that."""
    with trail(url) as reads, reads.snapshot():
        ledger, head = reads.ledger_id(), reads.head()
    return checkpoint.sign(Checkpoint(origin_of(ledger), head.size, head.root()), [signing_key(url, key)])


@dataclass(frozen=True, slots=True)
class Against:
    """What a trail is verified against. ``checkpoints`` are files; ``since`` starts behind the last one of a file."""

    key: str | None = None
    checkpoints: tuple[Path, ...] = ()
    since: Path | None = None


def verify_trail(url: str, against: Against) -> Verified:
    """Verifies a trail against itself and every checkpoint that is known: the files named, and the ledger's own file."""
    known: list[Signed] = []
    unknown: list[str] = []
    since = None
    for file in against.checkpoints:
        known += _take(checkpoint.load(file, public_keys(url, against.key)), file, unknown)
    if against.since is not None:
        since = checkpoint.load(against.since, public_keys(url, against.key)).last
    elif Places.of(url).checkpoints not in against.checkpoints:
        known += own_checkpoints(url, against.key, unknown)
    with trail(url) as reads:
        found = verify(reads, checkpoints=known, since=since, url=url)
    found.limits += unknown
    if not known and since is None:
        found.limits.append("no checkpoint was given: a ledger that was re-hashed or replaced as a whole looks sound")
    return found


def own_checkpoints(url: str, key: str | None, unknown: list[str]) -> list[Signed]:
    """The checkpoints beside a ledger, as far as they are signed by the key beside it, or ``key``. What cannot be used of
    them is said in ``unknown``: nobody has asked for them."""
    file = Places.of(url).checkpoints
    if not file.is_file():
        return []
    try:
        return _take(checkpoint.load(file, public_keys(url, key)), file, unknown)
    except UsageError as error:
        unknown.append(f"the checkpoints in {file}: {error.message}")
        return []


def _take(kept: Kept, file: Path, unknown: list[str]) -> list[Signed]:
    if kept.others:
        unknown.append(f"{kept.others} of the checkpoints in {file}: they are not signed by a key that was given")
    return list(kept.signed)


def prove(url: str, *, batch: str, item: str, key: str | None, kept: Path | None) -> dict[str, Any]:
    """The proof of one item: under the last checkpoint of a file, or under a new one, signed now.

    ``key`` is the private key that signs; with ``kept``, the public key that the checkpoints are signed with.
    """
    with trail(url) as reads, reads.snapshot():
        number, n = find(reads, batch, item)
        if kept is not None:
            signed = checkpoint.load(kept, public_keys(url, key)).last
        else:
            head = reads.head()
            text = Checkpoint(origin_of(reads.ledger_id()), head.size, head.root())
            signed = checkpoint.sign(text, [signing_key(url, key)])
        return proof.prove(reads, number=number, batch=batch, n=n, item=item, signed=signed)


def find(reads: TrailReads, batch: str, item: str) -> tuple[int, int]:
    """Batch number and item number. Raises UsageError where there is no such batch or item."""
    number = next((row.number for row in reads.batches() if row.id == batch), None)
    if number is None:
        raise UsageError(
            f"there is no batch {batch!r} in this ledger", code="no_such_batch", hint="payonce status lists the batches"
        )
    n = reads.number_of(number, item)
    if n is None:
        raise UsageError(
            f"batch {batch!r} has no item {item!r}", code="no_such_item", hint=f"payonce items {batch} lists them"
        )
    return number, n


def check_proof(path: Path, key: str) -> dict[str, Any]:
    """Checks a proof's file with public keys alone. Raises UsageError where it does not hold."""
    try:
        document = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        raise UsageError(
            f"cannot read {path}: {error}", code="file_unreadable", hint="name the proof's file"
        ) from error
    return proof.check(document, keys.load_public(key))
