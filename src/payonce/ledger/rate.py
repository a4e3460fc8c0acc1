"""The batch's rate over all workers: a bucket that starts empty and holds at most a tenth of a second's worth.

Kept as one number, the time the next unclaimed token is minted (GCRA), in nanoseconds so that rounding never adds up
to more than the rate. A token that nobody took within the bucket's depth is gone.
"""

from __future__ import annotations

from typing import Final

from payonce.ledger.rows import BatchRow

_NS_PER_KS: Final = 1_000_000_000_000


def claim_slots(batch: BatchRow, *, rate_per_ks: int | None, count: int, now_us: int) -> tuple[int, ...]:
    """The next ``count`` start times in microseconds, none before now; moves the batch's next token on.

    ``rate_per_ks`` is in calls per 1,000 seconds, None for no limit. A batch that was slowed down starts from an empty
    bucket when that is over, and keeps to its pace where that is lower than its rate.
    """
    rates = [rate for rate in (rate_per_ks, batch.pace_per_ks) if rate]
    start_us = max(now_us, batch.slow_until_us)
    if not rates:
        return (start_us,) * count
    rate = min(rates)
    interval_ns = -(-_NS_PER_KS // rate)
    depth = max(1, rate // 10_000)
    now_ns = now_us * 1000
    if not batch.next_slot_ns:
        batch.next_slot_ns = now_ns + interval_ns
    full_since_ns = now_ns - (depth - 1) * interval_ns
    batch.next_slot_ns = max(batch.next_slot_ns, full_since_ns, batch.slow_until_us * 1000)
    slots = []
    for _ in range(count):
        slots.append(max(start_us, -(-batch.next_slot_ns // 1000)))
        batch.next_slot_ns += interval_ns
    return tuple(slots)
