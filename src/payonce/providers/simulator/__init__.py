"""A stateful fake payment provider: in process, or as a real HTTP server on the loopback interface.

It executes nothing but its own books. Its true effects are recorded apart, for auditors; code under test must only
use what its API answers.
"""

from __future__ import annotations

from payonce.providers.simulator.behaviours import Account, Charge, Config, RateLimit, load, parse
from payonce.providers.simulator.faults import Fault, Kind, When
from payonce.providers.simulator.inprocess import InProcess, Reset, Silent, SimulatedNetworkError
from payonce.providers.simulator.journal import FileJournal, JournalError
from payonce.providers.simulator.opening import open_world, wall_clock_us
from payonce.providers.simulator.plan import Abort, Answer, Call, Close, Plan, Reply, Silence, Wait
from payonce.providers.simulator.store import Effect
from payonce.providers.simulator.values import ConfigError
from payonce.providers.simulator.world import World

__all__ = [
    "Abort",
    "Account",
    "Answer",
    "Call",
    "Charge",
    "Close",
    "Config",
    "ConfigError",
    "Effect",
    "Fault",
    "FileJournal",
    "InProcess",
    "JournalError",
    "Kind",
    "Plan",
    "RateLimit",
    "Reply",
    "Reset",
    "Silence",
    "Silent",
    "SimulatedNetworkError",
    "Wait",
    "When",
    "World",
    "load",
    "open_world",
    "parse",
    "wall_clock_us",
]
