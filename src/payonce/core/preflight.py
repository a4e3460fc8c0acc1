"""Whether somebody acted on a target outside this ledger (SPEC section 9). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from payonce.core.money import Money
from payonce.core.overlap import Acting

ACTED_OUTSIDE: Final = "acted_outside"
OWN_EXECUTION: Final = "own_execution_shown"


def acted_outside(target: str, *, taken: Money | None, ours: Iterable[Acting]) -> str | None:
    """What of a target was taken by nobody this ledger knows, in words; None where all of it may be ours.

    ``taken`` is what the provider says was taken, None where it only says that something was. ``ours`` are the ledger's
    items on the target that may show there, by their asked amounts; one without an amount may be anything.
    """
    known = list(ours)
    if any(one.money is None for one in known):
        return None
    if taken is None:
        if known:
            return None
        return f"something of {target} was refunded or taken already, and no batch of this ledger did it"
    sums = sum(one.money.minor for one in known if one.money is not None and one.money.currency == taken.currency)
    if sums >= taken.minor:
        return None
    return (
        f"{taken} of {target} was refunded or taken already, and the batches of this ledger did "
        f"{Money.of_minor(sums, taken.currency)} of it"
    )
