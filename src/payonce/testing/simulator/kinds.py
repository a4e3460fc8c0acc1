"""The world of a seed. Most are ``mixed``: a little of everything. The other kinds have much of what takes long to come
together by chance: keys that expire between repeats, spools that several processes leave, items that share slow targets,
clocks that are set while others wait, and large batches with little trouble.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final

from payonce.core.keys import KeyFormat
from payonce.core.model import SECOND_US, Declaration, KeyDeclaration, Limits, LookupDeclaration, NewItem
from payonce.core.money import Money
from payonce.testing.simulator.scenario import FAULTS, LIES, Scenario, Storm

HOUR_US: Final = 3600 * SECOND_US
_PAUSES_US: Final = (30 * SECOND_US, 600 * SECOND_US, 2 * HOUR_US, 30 * HOUR_US)
_DISK_FAULTS: Final = ("before", "before", "after", "after", "read")
# Where all processes share a machine, its steady clock tells how far the other was set. Where they do not, nobody can
# tell, and the server's clock is only ever set back by less than the margin of a key's window.
_JUMPS_US: Final = tuple(s * SECOND_US for s in (-300, -60, -5, -1, 0, 1, 5, 60, 300))
# Where a look-up tells our executions by their time alone, a clock that is wrong by more than the tolerance hides them.
_JUMPS_IN_TOLERANCE_US: Final = tuple(s * SECOND_US for s in (-30, -5, -1, 0, 1, 5, 30))
_SMALL_JUMPS_US: Final = (-5 * SECOND_US,)


def draw(rng: Random) -> Scenario:
    """The world of a seed."""
    change = rng.choices(_CHANGES, _SHARES)[0]
    return change(rng, _mixed(rng))


def _mixed(rng: Random) -> Scenario:
    limits = _limits(rng)
    targets = rng.random() < 0.6
    count = rng.choice((4, 12, 30, 60, 60, 200))
    if rng.random() < 0.08:  # as slow as a small account is allowed to be
        limits, count = replace(limits, rate_per_ks=rng.choice((500, 2_000))), min(count, 30)
    items = _items(rng, count=count, shared=rng.choice((1, 2, 5)) if targets else 0)
    if rng.random() < 0.25:
        limits = _with_budget(rng, limits, items)
    wild = rng.random() < 0.8
    declaration = _declaration(rng)
    one_host = rng.random() < 0.6
    return Scenario(
        kind="mixed",
        declaration=declaration,
        limits=limits,
        items=items,
        targets=targets,
        processes=rng.choice((1, 1, 2, 2, 3, 4)),
        one_host=one_host,
        network_us=rng.choice((1_000, 20_000, 20_000, 200_000)),
        disk_us=rng.choice((0, 0, 0, 2_000, 20_000)),
        fault_share=rng.choice((0.03, 0.1, 0.3, 0.5)) if wild else 0.0,
        faults=tuple(rng.sample(FAULTS, rng.choice((2, 4, 7, len(FAULTS))))),
        look_up_fault_share=rng.choice((0.0, 0.1, 0.4)),
        hides=rng.choice((0.5, 1.0)),
        declined_share=rng.choice((0.0, 0.0, 0.02, 0.1)),
        done_before_share=rng.choice((0.0, 0.0, 0.1, 0.3)),
        outages=rng.choice((0, 0, 0, 1)),
        storms=_storms(rng, most_s=20) if rng.random() < 0.1 else (),
        liar=rng.choice(LIES) if rng.random() < 0.06 else None,
        skew_us=rng.randint(-20, 20) * SECOND_US,
        chaos_strikes=rng.choice((5, 15, 40)),
        chaos_steps=rng.choice((60, 200, 600)),
        crash=rng.choice((0.0, 1.0, 3.0)),
        crash_at_point=rng.choice((0.0, 1.0, 2.0)),
        freeze=rng.choice((0.0, 0.5, 2.0)),
        ledger_fault=rng.choice((0.0, 0.5, 2.0)),
        disk_faults=_DISK_FAULTS,
        ledger_slow=rng.choice((0.0, 0.0, 0.5)),
        operator=rng.choice((0.0, 0.0, 0.5, 1.0)),
        signal=rng.choice((0.0, 0.3)),
        clock=rng.choice((0.0, 0.0, 0.5)) if one_host or declaration.key is not None else 0.0,
        jumps_us=_jumps_us(declaration) if one_host else _SMALL_JUMPS_US,
        long_pause=rng.choice((0.0, 0.0, 0.5, 1.5)),
        pauses_us=_PAUSES_US,
        trail=rng.random() < 0.1,
    )


def _expiry(rng: Random, base: Scenario) -> Scenario:
    """Keys that are forgotten after seconds, and repeats that take longer: refused for load, or between two starts."""
    retention_s = rng.choice((8, 12, 20, 40))
    key = KeyDeclaration("header", KeyFormat(), retention_us=retention_s * SECOND_US, stores_errors=rng.random() < 0.3)
    declaration = replace(
        base.declaration,
        key=key,
        lookup=base.declaration.lookup if rng.random() < 0.3 else None,
        max_execution_us=rng.choice((SECOND_US // 2, SECOND_US, 2 * SECOND_US)),
        timeout_us=rng.choice((SECOND_US // 2, SECOND_US)),
    )
    return replace(
        base,
        kind="expiry",
        declaration=declaration,
        limits=replace(
            base.limits,
            attempts=rng.choice((5, 20, 50)),
            rate_per_ks=rng.choice((None, None, 2_000)),
            stop_after_consecutive=None,
        ),
        items=base.items[:60],
        fault_share=rng.choice((0.1, 0.3, 0.5)),
        faults=("lost_answer", "reset_after", "garbage", "slow", *rng.sample(("rate_limited", "busy", "late"), 2)),
        storms=_storms(rng, most_s=2 * retention_s),
        clock=base.clock if base.one_host else 0.0,
        long_pause=rng.choice((0.0, 1.0, 3.0)),
        pauses_us=tuple(retention_s * SECOND_US * part // 6 for part in (1, 2, 4, 6)),
    )


def _spools(rng: Random, base: Scenario) -> Scenario:
    """Several processes on one batch, without keys: their ledgers fail after the fact, and each leaves a spool."""
    lookup = base.declaration.lookup if rng.random() < 0.7 else None
    return replace(
        base,
        kind="spools",
        declaration=replace(base.declaration, key=None, lookup=lookup and replace(lookup, key=False)),
        limits=replace(
            base.limits, concurrency=rng.choice((4, 16)), stop_after_consecutive=None, stop_after_refusals=None
        ),
        items=base.items[:60],
        processes=rng.choice((2, 3, 4)),
        network_us=rng.choice((20_000, 200_000)),
        fault_share=rng.choice((0.3, 0.5)),
        faults=("rate_limited", "busy", *rng.sample(("refused_connection", "lost_answer", "slow", "reset_after"), 2)),
        chaos_strikes=rng.choice((15, 40)),
        chaos_steps=rng.choice((60, 200)),
        crash=rng.choice((1.0, 3.0)),
        freeze=rng.choice((0.0, 1.0)),
        ledger_fault=4.0,
        disk_faults=("before", "after", "after"),
        clock=base.clock if base.one_host else 0.0,
    )


def _shared(rng: Random, base: Scenario) -> Scenario:
    """Many partial payments on few targets, at a provider that takes its time."""
    return replace(
        base,
        kind="shared",
        limits=replace(base.limits, concurrency=rng.choice((4, 16, 32))),
        items=_items(rng, count=min(len(base.items), rng.choice((12, 30, 60))), shared=rng.choice((4, 10))),
        targets=True,
        processes=rng.choice((1, 2, 3, 4)),
        network_us=rng.choice((20_000, 200_000)),
        fault_share=rng.choice((0.1, 0.3, 0.5)),
        faults=("slow", "late", *rng.sample(FAULTS, 2)),
    )


def _clocks(rng: Random, base: Scenario) -> Scenario:
    """One machine whose clock is set again and again while its processes die and others take over."""
    declaration = base.declaration
    if rng.random() < 0.5 and declaration.lookup is not None:
        declaration = replace(declaration, key=None, lookup=replace(declaration.lookup, key=False))
    return replace(
        base,
        kind="clocks",
        declaration=declaration,
        limits=replace(base.limits, rate_per_ks=rng.choice((None, 20_000))),
        one_host=True,
        items=base.items[:60],
        crash=rng.choice((1.0, 3.0)),
        clock=2.0,
        jumps_us=_jumps_us(declaration),
    )


def _large(rng: Random, base: Scenario) -> Scenario:
    """A batch of more items than bad luck: what a run mostly is."""
    count = rng.choice((400, 1000))
    rate = base.limits.rate_per_ks
    return replace(
        base,
        kind="large",
        limits=replace(
            base.limits,
            concurrency=rng.choice((16, 32, 64)),
            stop_after_refusals=None,
            budget={},
            rate_per_ks=None if rate is None else 500_000,
        ),
        items=_items(rng, count=count, shared=rng.choice((1, 2)) if base.targets else 0),
        fault_share=rng.choice((0.0, 0.01, 0.03)),
        declined_share=0.0,
        chaos_steps=rng.choice((600, 2000)),
        liar=None,
        outages=0,
    )


_KINDS: Final[dict[Callable[[Random, Scenario], Scenario], float]] = {
    lambda rng, base: base: 5,
    _expiry: 1,
    _spools: 1,
    _shared: 1,
    _clocks: 1,
    _large: 1,
}
_CHANGES, _SHARES = list(_KINDS), list(_KINDS.values())


# parts


def _storms(rng: Random, *, most_s: int) -> tuple[Storm, ...]:
    found = []
    for _ in range(rng.choice((1, 2))):
        begin = int(rng.random() * 3 * SECOND_US)
        end = begin + int(rng.random() * most_s * SECOND_US)
        found.append(Storm(begin, end, rng.choice(("rate_limited", "rate_limited", "refused_connection", "busy"))))
    return tuple(found)


def _jumps_us(declaration: Declaration) -> tuple[int, ...]:
    """What the clock of one machine may be off by."""
    lookup = declaration.lookup
    by_time = lookup is not None and not (lookup.own_reference or lookup.key)
    return _JUMPS_IN_TOLERANCE_US if by_time else _JUMPS_US


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


def _items(rng: Random, *, count: int, shared: int) -> tuple[NewItem, ...]:
    """``shared``: how many items there are for each target; 0 where each has its own."""
    targets = max(1, count // shared) if shared else 0
    whole = rng.random() < 0.3  # equal amounts are the hardest to tell apart
    currencies = rng.choice((("USD",), ("USD",), ("USD", "JPY", "KWD")))
    found = []
    for n in range(count):
        minor = 1000 if whole else rng.randint(1, 100_000)
        target = f"t{rng.randrange(targets)}" if targets else f"t{n}"
        found.append(NewItem(f"i{n}", Money.of_minor(minor, rng.choice(currencies)), target=target))
    return tuple(found)


def _with_budget(rng: Random, limits: Limits, items: tuple[NewItem, ...]) -> Limits:
    """A budget that is just enough, or not enough."""
    totals: dict[str, int] = {}
    for item in items:
        assert item.money is not None
        totals[item.money.currency] = totals.get(item.money.currency, 0) + item.money.minor
    share = rng.choice((1.0, 0.7))
    return replace(limits, budget={currency: int(total * share) for currency, total in totals.items()})
