"""One simulated world, drawn from a seed: what the provider promises and does, what is to be paid, what goes wrong.

Everything random about a world that is known before it begins is here; what is drawn while it runs comes from the same
generator. The promises that a scenario declares are kept by the provider, except where ``liar`` says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from payonce.core.keys import KeyFormat
from payonce.core.model import SECOND_US, Declaration, KeyDeclaration, Limits, LookupDeclaration, NewItem
from payonce.core.money import Money

HOUR_US: Final = 3600 * SECOND_US

# What a provider's answer to one call may be, besides the plain one. The names are those of a trace.
FAULTS: Final = (
    "lost_request",  # never arrives; no answer
    "lost_answer",  # executed; no answer before the deadline
    "reset_before",  # the connection breaks, nothing arrived
    "reset_after",  # executed, then the connection breaks
    "late",  # the connection breaks; the request arrives later all the same
    "slow",  # works on it for long, perhaps past the deadline
    "error_500_before",  # an error, not executed
    "error_500_after",  # an error, executed
    "garbage",  # executed; the answer cannot be read
    "rate_limited",  # 429
    "refused_connection",  # no byte left
    "busy",  # a definite "not now", which counts as an attempt
    "contradiction",  # an answer after which asking again cannot help
)
# Lies: what no adapter declares. A world with a liar is held to less (see the auditor).
LIES: Final = ("wrong_amount", "duplicate", "keys_ignored", "other_amount_replayed")


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a seed stands for. Shares are probabilities a call or an item; ``_us`` are microseconds."""

    declaration: Declaration
    limits: Limits
    items: tuple[NewItem, ...]
    targets: bool
    processes: int
    network_us: int
    disk_us: int
    fault_share: float
    faults: tuple[str, ...]
    look_up_fault_share: float
    hides: float
    declined_share: float
    done_before_share: float
    outages: int
    liar: str | None
    skew_us: int
    calm_us: int
    chaos_steps: int
    crash: float
    crash_at_point: float
    freeze: float
    ledger_fault: float
    ledger_slow: float
    operator: float
    signal: float
    clock: float
    long_pause: float
    trail: bool

    @property
    def guarantee(self) -> str:
        """Which line of SPEC section 13 applies: keys, look-up, both, none."""
        key, lookup = self.declaration.key is not None, self.declaration.lookup is not None
        return {(True, True): "both", (True, False): "keys", (False, True): "look-up"}.get((key, lookup), "none")


def draw(rng: Random) -> Scenario:
    """The world of a seed."""
    limits = _limits(rng)
    targets = rng.random() < 0.6
    items = _items(rng, shared=targets)
    if rng.random() < 0.25:
        limits = _with_budget(rng, limits, items)
    wild = rng.random() < 0.8
    declaration = _declaration(rng)
    # Without keys a look-up has only the time to go by: there the wall clock is taken to be right.
    clock = rng.choice((0.0, 0.0, 0.5)) if declaration.key is not None else rng.choice((0.0, 0.0, 0.0))
    return Scenario(
        declaration=declaration,
        limits=limits,
        items=items,
        targets=targets,
        processes=rng.choice((1, 1, 2, 2, 3, 4)),
        network_us=rng.choice((1_000, 20_000, 20_000, 200_000)),
        disk_us=rng.choice((0, 0, 0, 2_000, 20_000)),
        fault_share=rng.choice((0.03, 0.1, 0.3, 0.5)) if wild else 0.0,
        faults=tuple(rng.sample(FAULTS, rng.choice((2, 4, 7, len(FAULTS))))),
        look_up_fault_share=rng.choice((0.0, 0.1, 0.4)),
        hides=rng.choice((0.5, 1.0)),
        declined_share=rng.choice((0.0, 0.0, 0.02, 0.1)),
        done_before_share=rng.choice((0.0, 0.0, 0.1, 0.3)),
        outages=rng.choice((0, 0, 0, 1)),
        liar=rng.choice(LIES) if rng.random() < 0.06 else None,
        skew_us=rng.randint(-20, 20) * SECOND_US,
        calm_us=rng.choice((5, 20, 60)) * SECOND_US,
        chaos_steps=rng.choice((60, 200, 600)),
        crash=rng.choice((0.0, 1.0, 3.0)),
        crash_at_point=rng.choice((0.0, 1.0, 2.0)),
        freeze=rng.choice((0.0, 0.5, 2.0)),
        ledger_fault=rng.choice((0.0, 0.5, 2.0)),
        ledger_slow=rng.choice((0.0, 0.0, 0.5)),
        operator=rng.choice((0.0, 0.0, 0.5, 1.0)),
        signal=rng.choice((0.0, 0.3)),
        clock=clock,
        long_pause=rng.choice((0.0, 0.0, 0.5, 1.5)),
        trail=rng.random() < 0.1,
    )


def _declaration(rng: Random) -> Declaration:
    which = rng.choice(("both", "both", "keys", "keys", "look-up", "look-up", "look-up", "none"))
    key = lookup = None
    if which in ("both", "keys"):
        retention = rng.choice((None, 24 * HOUR_US, HOUR_US, 600 * SECOND_US, 60 * SECOND_US))
        key = KeyDeclaration("header", KeyFormat(), retention_us=retention, stores_errors=rng.random() < 0.5)
    if which in ("both", "look-up"):
        echo = rng.choice(("own", "key", "both", "neither")) if key else rng.choice(("own", "neither"))
        lag = rng.choice((0, 2 * SECOND_US, 8 * SECOND_US))
        lookup = LookupDeclaration("target", lag, own_reference=echo in ("own", "both"), key=echo in ("key", "both"))
    steps = ("create", "fund") if rng.random() < 0.15 else ("call",)
    return Declaration(
        kind="simulated",
        operation="payout",
        key=key,
        lookup=lookup,
        max_execution_us=rng.choice((1, 2, 6)) * SECOND_US,
        timeout_us=rng.choice((SECOND_US // 2, SECOND_US, 4 * SECOND_US)),
        steps=steps,
    )


def _limits(rng: Random) -> Limits:
    return Limits(
        concurrency=rng.choice((1, 4, 16, 32)),
        rate_per_ks=rng.choice((None, None, None, None, 500_000)),
        attempts=rng.choice((2, 5, 5)),
        stop_after_refusals=rng.choice((None, None, 5)),
        stop_after_consecutive=rng.choice((None, None, 3)),
        grace_us=rng.choice((1, 5)) * SECOND_US,
        lease_us=rng.choice((4, 8, 30)) * SECOND_US,
    )


def _items(rng: Random, *, shared: bool) -> tuple[NewItem, ...]:
    count = rng.choice((4, 12, 30, 60))
    targets = max(1, count // rng.choice((1, 2, 5))) if shared else count
    whole = rng.random() < 0.3  # equal amounts are the hardest to tell apart
    currencies = rng.choice((("USD",), ("USD",), ("USD", "JPY", "KWD")))
    found = []
    for n in range(count):
        minor = 1000 if whole else rng.randint(1, 100_000)
        target = f"t{rng.randrange(targets)}" if shared else f"t{n}"
        found.append(NewItem(f"i{n}", Money.of_minor(minor, rng.choice(currencies)), target=target))
    return tuple(found)


def _with_budget(rng: Random, limits: Limits, items: tuple[NewItem, ...]) -> Limits:
    """A budget that is just enough, or not enough."""
    totals: dict[str, int] = {}
    for item in items:
        assert item.money is not None
        totals[item.money.currency] = totals.get(item.money.currency, 0) + item.money.minor
    share = rng.choice((1.0, 0.7))
    budget = {currency: int(total * share) for currency, total in totals.items()}
    return Limits(
        concurrency=limits.concurrency,
        rate_per_ks=limits.rate_per_ks,
        attempts=limits.attempts,
        budget=budget,
        grace_us=limits.grace_us,
        lease_us=limits.lease_us,
    )
