"""Kept payloads against the events that say what was kept, and against those that erased some of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from payonce.core.keys import digest
from payonce.ledger.trail_port import Filed, KeptPayload, TrailReads
from payonce.trail.faults import Fault

# Events between two payloads are read along rather than asked for one by one, up to so many.
_NEAR: Final = 64
_AT_MOST: Final = 2048


def payload_faults(reads: TrailReads, *, told: int) -> Iterator[Fault]:
    """What was changed of the kept payloads. ``told``: how many there are by the events."""
    there = 0
    for run in _runs(reads.payloads()):
        events = {seq: (place, body) for seq, place, body, _ in reads.filed(run[0].seq, run[-1].seq)}
        for kept in run:
            place, body = events.get(kept.seq, (None, b"{}"))
            wanted = _said(body).get(f"{kept.kind}_kept")
            if wanted is None or place != kept.place:
                text = f"a {kept.kind} is kept with event {kept.seq}, which does not say so"
                yield Fault("payload_changed", text, kept.seq)
                continue
            there += 1
            if kept.digest.hex() != wanted or (kept.body is not None and digest(kept.body) != wanted):
                yield Fault("payload_changed", f"the {kept.kind} kept with event {kept.seq} was changed", kept.seq)
            elif (kept.body is None or kept.erased_by is not None) and not _was_erased(reads, kept):
                text = f"the {kept.kind} kept with event {kept.seq} is gone, and no event erased it"
                yield Fault("payload_changed", text, kept.seq)
    if there < told:
        yield Fault("payload_changed", f"{told - there} kept payloads are gone, and no event erased them")


def _runs(payloads: Iterable[KeptPayload]) -> Iterator[list[KeptPayload]]:
    """Payloads in runs that are near each other."""
    run: list[KeptPayload] = []
    for kept in payloads:
        if run and (kept.seq - run[-1].seq > _NEAR or kept.seq - run[0].seq > _AT_MOST):
            yield run
            run = []
        run.append(kept)
    if run:
        yield run


def _was_erased(reads: TrailReads, kept: KeptPayload) -> bool:
    """Whether it is gone by the event that is named as having erased it, which is about the same item and later."""
    by = kept.erased_by
    if kept.body is not None or by is None or by <= kept.seq:
        return False
    events: Iterable[Filed] = reads.filed(by, by)
    return any(place == kept.place and _said(body).get("type") == "erased" for _, place, body, _ in events)


def _said(body: bytes) -> Mapping[str, Any]:
    try:
        said = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) else {}
