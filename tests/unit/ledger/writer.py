"""A process that writes to a ledger in a loop until it is killed: ``python -m tests.unit.ledger.writer URL ITEMS``.

It prints each item number once the ledger has said that it is durable. With a third argument, file sizes are limited to
so many bytes first, which ends like a full disk; then it prints the error's code.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import sys

from payonce.core.errors import LedgerError
from payonce.ledger.connect import connect
from payonce.ledger.group import AsyncLedger
from tests.unit.ledger.ledgers import begin, commit, intent


async def write(url: str, items: int, limit: int | None) -> None:
    store = connect(url, create=True)
    worker = begin(store, items)
    if limit is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    ledger = AsyncLedger(store)

    async def one(n: int) -> None:
        await ledger.write(worker, intent(n, size=2000))
        sys.stdout.write(f"i {n}\n")
        await ledger.write(worker, commit(n))
        sys.stdout.write(f"c {n}\n")
        sys.stdout.flush()

    pending: set[asyncio.Task[None]] = set()
    try:
        for n in range(1, items + 1):
            pending.add(asyncio.create_task(one(n)))
            if len(pending) >= 32:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
    except LedgerError as error:
        await asyncio.gather(*pending, return_exceptions=True)
        sys.stdout.write(f"error {error.code}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None))
