"""Results while a batch runs: each item's record once it is decided, in the order in which the ledger decided.

Reads what is durable and nothing else: a record that is told was committed before. A consumer that remembers the last
``seq`` goes on after it and misses nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from payonce.core.states import BatchState, ItemEvent
from payonce.ledger.protocol import Ledger
from payonce.service.inspecting import find_batch
from payonce.service.resulting import Reader, one

_PAGE: Final = 1000
_LOOK_S: Final = 0.2
_DECIDED: Final = frozenset(
    {e.value for e in (ItemEvent.COMMIT, ItemEvent.REFUSE, ItemEvent.UNDECIDED, ItemEvent.SKIP)}
)
_OVER: Final = (BatchState.FINISHED, BatchState.CANCELLED)


def follow(
    ledger: Ledger, batch: str, reader: Reader, *, after_seq: int = 0, sleep: Callable[[float], None] = time.sleep
) -> Iterator[dict[str, Any]]:
    """Records as they are decided, each with the ``seq`` of its event; ends when the batch is finished or cancelled.

    An item that is decided anew (unknown, then committed) comes again with its new state: the last record of an item
    holds. A batch that is stopped or interrupted is waited for.
    """
    find_batch(ledger, batch)
    after = after_seq
    while True:
        over = ledger.batches(batch)[0].state in _OVER
        page = ledger.events(batch, after_seq=after, limit=_PAGE)
        for event in page:
            after = event.seq
            if event.n is None or orjson.loads(event.body).get("type") not in _DECIDED:
                continue
            record = one(ledger, batch, event.n, reader)
            if record is not None:
                yield {"seq": event.seq, **record}
        if len(page) == _PAGE:
            continue
        if over:
            return
        sleep(_LOOK_S)
