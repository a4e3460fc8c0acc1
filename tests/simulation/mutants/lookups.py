"""Broken variants: look-ups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from payonce.core import decide, sighting
from payonce.core.model import Declaration
from payonce.core.outcome import Found, LookupFailed
from payonce.engine import attempt
from tests.simulation.mutants.registry import Patch, mutant, replaced

# look-ups


@mutant("the look-up does not wait for its lag and the longest execution")
def look_up_at_once() -> Patch:
    return patch.object(decide, "quiet_from", lambda intent, declaration: 0)


@mutant("the look-up waits for the longest execution, but not for its lag")
def look_up_without_lag() -> Patch:
    def wrap(original: Any) -> Any:
        def quiet(intent: Any, declaration: Declaration) -> int:
            bare = replace(declaration.lookup, lag_us=0)
            return original(intent, replace(declaration, lookup=bare))

        return quiet

    return replaced(decide, "quiet_from", wrap)


@mutant("a look-up that failed counts as one that found nothing")
def failed_look_up_is_absence() -> Patch:
    def wrap(original: Any) -> Any:
        async def _ask(self: Any, intent: Any) -> Any:
            reply = await original(self, intent)
            return Found(()) if isinstance(reply, LookupFailed) and not reply.stop else reply

        return _ask

    return replaced(attempt.Caller, "_ask", wrap)


@mutant("a look-up takes somebody else's execution for ours")
def others_are_ours() -> Patch:
    return patch.object(sighting, "_carries_ours", lambda execution, intent: True)
