"""Named instants at which a test lets the process die, to prove that dying there is safe.

In normal use ``hit`` does nothing. With ``PAYONCE_CRASH_AT=name`` (or ``name:K`` for the K-th time) in the environment
the process is killed by SIGKILL there, as a power cut would: no clean-up runs.
"""

from __future__ import annotations

import os
import signal
from typing import Final

CRASH_POINTS: Final = (
    "before_intent",
    "after_intent",
    "before_send",
    "after_answer",
    "before_commit",
    "after_commit",
    "after_take_over",
    "before_lookup",
    "after_lookup",
    "after_answer_begun",
    "after_output",
    "before_resend",
    "before_spool",
    "after_spool",
    "before_finish",
)


def _nothing(name: str) -> None:
    """The normal case: no crash wanted."""


class _Killer:
    """Kills this process at the K-th passing of one point."""

    def __init__(self, spec: str) -> None:
        self._name, _, count = spec.partition(":")
        assert self._name in CRASH_POINTS, f"PAYONCE_CRASH_AT names no crash point: {self._name}"
        self._left = int(count or 1)

    def __call__(self, name: str) -> None:
        if name != self._name:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


_spec = os.environ.get("PAYONCE_CRASH_AT")
hit = _Killer(_spec) if _spec else _nothing
