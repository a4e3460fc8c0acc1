"""What one simulated world is made of: what the provider promises and does, what is to be paid, what goes wrong.

The promises that a scenario declares are kept by the provider, except where ``liar`` says otherwise. Scenarios are
drawn in ``kinds``; what is drawn while a world runs comes from the same generator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from payonce.core.model import Declaration, Limits, NewItem

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
class Storm:
    """A time in which nearly every call meets one fault: an overload that lasts, a broken load balancer."""

    begin_us: int
    end_us: int
    fault: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a seed stands for. Shares are probabilities a call or an item; ``_us`` are microseconds.

    The names of bad luck are how often it strikes, against one another. ``one_host``: all processes see one another and
    one steady clock. ``jumps_us`` is what the wall clock may be off by, ``pauses_us`` how long nothing may run,
    ``disk_faults`` how a ledger may fail.
    """

    kind: str
    declaration: Declaration
    limits: Limits
    items: tuple[NewItem, ...]
    targets: bool
    processes: int
    one_host: bool
    network_us: int
    disk_us: int
    fault_share: float
    faults: tuple[str, ...]
    look_up_fault_share: float
    hides: float
    declined_share: float
    done_before_share: float
    outages: int
    storms: tuple[Storm, ...]
    liar: str | None
    skew_us: int
    chaos_strikes: int
    chaos_steps: int
    crash: float
    crash_at_point: float
    freeze: float
    ledger_fault: float
    disk_faults: tuple[str, ...]
    ledger_slow: float
    operator: float
    signal: float
    clock: float
    jumps_us: tuple[int, ...]
    long_pause: float
    pauses_us: tuple[int, ...]
    trail: bool

    @property
    def guarantee(self) -> str:
        """Which line of SPEC section 13 applies: keys, look-up, both, none."""
        key, lookup = self.declaration.key is not None, self.declaration.lookup is not None
        return {(True, True): "both", (True, False): "keys", (False, True): "look-up"}.get((key, lookup), "none")
