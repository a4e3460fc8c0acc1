"""How far a clock was set between two workers, told by the clock that nobody sets.

The ledger's times are those of the machine's wall clock. Where it is set forward between a call and the start that resolves
it, the waits that a look-up needs would seem to be over; where it is set back, a key would seem younger than it is. Within
one boot of one machine the steady clock (suspended time included) tells the two apart: both workers have noted it as they
joined. Across machines and boots nothing can be told, and the ledger's clock stands.
"""

from __future__ import annotations

from payonce.ledger.rows import ItemRow, OpenRow, WorkerRow


def set_by_us(before: WorkerRow, after: WorkerRow) -> int:
    """Microseconds by which the clock was set between two workers' joining, negative for back; 0 where nobody can tell."""
    one, two = before.actor, after.actor
    if not (one.steady_us and two.steady_us and one.boot) or (one.boot, one.host) != (two.boot, two.host):
        return 0
    return (after.joined_us - two.steady_us) - (before.joined_us - one.steady_us)


def carry_over(row: ItemRow, held: OpenRow, *, set_us: int) -> None:
    """A taken-over intent's times in the clock of who takes it over, as far as that is the careful way: what has to be
    waited for moves with a clock that was set forward, the age of a key with one that was set back."""
    if set_us > 0:
        held.send_by_us += set_us
        held.deadline_us += set_us
        if held.seen_us is not None:
            held.seen_us += set_us
    elif set_us < 0:
        held.first_sent_us = max(0, held.first_sent_us + set_us)
        if row.first_sent_us:
            row.first_sent_us = max(1, row.first_sent_us + set_us)
