"""Making the key that signs a trail's checkpoints, and replacing it; both are events of the trail."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from payonce.core.errors import UsageError
from payonce.ledger.actors import this_actor
from payonce.service.trailing import Places, writable
from payonce.trail import keys
from payonce.trail.checkpoint import Checkpoint, Signed, origin_of, sign
from payonce.trail.publish import ToFile, publish


def make(url: str, *, out: Path | None, rotate: bool, reason: str | None) -> dict[str, Any]:
    """Makes the trail's key, or replaces it, and records that with the public key.

    At a rotation the old key is kept as ``KEY.old-<id>`` and a checkpoint is signed by both keys, which hands the trust
    on and goes beside the ledger; ``KEY.pub`` then holds both public keys. Raises UsageError where there is a key already, or none to replace. A
    crash half-way leaves the old key, if there was one, under its new name: nothing is lost.
    """
    if rotate and not (reason or "").strip():
        raise UsageError("replacing a key needs a reason", code="no_reason", hint="say why: --reason TEXT")
    path = out or Places.of(url).key
    with writable(url) as ledger:
        name = origin_of(ledger.info().id)
        old, aside = _set_aside(path) if rotate else (None, None)
        new = keys.new_key(name)
        try:
            public = keys.save(new, path)
        except UsageError:
            if aside is not None:  # the old key goes on signing
                aside.rename(path)
            raise
        data = {"key": str(new.verifier), **({"old_key": str(old.verifier)} if old else {})}
        ledger.record("trail_key", data, actor=this_actor(), reason=reason or "a key for checkpoints")
        info = ledger.info()
        signed = sign(Checkpoint(name, info.events, bytes.fromhex(info.root)), [old, new]) if old else None
    beside = [ToFile(Places.of(url).checkpoints)]
    warnings = publish(signed, beside, show=lambda _: None) if signed is not None else []
    return {**_made(new, path, public, aside, signed), "warnings": warnings}


def _set_aside(path: Path) -> tuple[keys.SigningKey, Path]:
    old = keys.load_private(str(path), environ=os.environ)
    aside = path.with_name(f"{path.name}.old-{old.verifier.id.hex()}")
    path.rename(aside)
    return old, aside


def _made(new: keys.SigningKey, path: Path, public: Path, aside: Path | None, signed: Signed | None) -> dict[str, Any]:
    return {
        "public": str(new.verifier),
        "file": str(path),
        "public_file": str(public),
        "old": str(aside) if aside else None,
        "checkpoint": str(signed) if signed else None,
    }
