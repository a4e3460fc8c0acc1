"""Broken variants: what an answer means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from payonce.core.model import Declaration
from payonce.core.outcome import Executed, NotExecuted, Refused, Unresolved
from payonce.core.verdict import GiveUp, PlanAgain, SendAgain
from payonce.engine import attempt, changes
from tests.simulation.mutants.registry import Patch, both, mutant, replaced

# answers


@mutant("a 500 is taken as refused")
def error_500_is_refused() -> Patch:
    return _answers_as(lambda o: Refused("status_500") if _is(o, "status_500") else o)


@mutant("a broken connection is taken as not executed")
def reset_is_not_executed() -> Patch:
    return _answers_as(lambda o: NotExecuted("reset", load=True) if _is(o, "reset") else o)


@mutant("a timeout is taken as not executed")
def timeout_is_not_executed() -> Patch:
    return _answers_as(lambda o: NotExecuted("timeout", load=True) if _is(o, "timeout") else o)


@mutant("an unreadable answer is taken as executed")
def garbage_is_executed() -> Patch:
    return _answers_as(lambda o: Executed("unreadable") if _is(o, "unreadable") else o)


def _is(outcome: Any, code: str) -> bool:
    return isinstance(outcome, Unresolved) and outcome.code == code and not outcome.burnt


def _answers_as(change: Callable[[Any], Any]) -> Patch:
    def wrap(original: Any) -> Any:
        return lambda outcome, **more: original(change(outcome), **more)

    return replaced(attempt, "after_reply", wrap)


@mutant("a 429 on a repeated call is taken as proof that nothing was executed")
def limited_resend_is_proof() -> Patch:
    def wrap(original: Any) -> Any:
        def after_reply(outcome: Any, **more: Any) -> Any:
            if isinstance(outcome, NotExecuted):
                # and it has no further use for the key it had
                return PlanAgain(
                    outcome.code, outcome.message, load=outcome.load, new_generation=more["declaration"].key is not None
                )
            return original(outcome, **more)

        return after_reply

    return replaced(attempt, "after_reply", wrap)


@mutant("a refusal of a repeated call is taken as the refusal of the first")
def refused_resend_is_refused() -> Patch:
    def wrap(original: Any) -> Any:
        return lambda outcome, **more: original(outcome, **{**more, "resend": more["resend"] and not _no(outcome)})

    return replaced(attempt, "after_reply", wrap)


def _no(outcome: Any) -> bool:
    return isinstance(outcome, Refused | NotExecuted)


@mutant("what no rule can decide is sent again")
def unknown_is_retried() -> Patch:
    def wrap(original: Any) -> Any:
        def next_move(intent: Any, declaration: Declaration, *, attempts: int, now_us: int) -> Any:
            move = original(intent, declaration, attempts=attempts, now_us=now_us)
            return SendAgain(now_us) if isinstance(move, GiveUp) and intent.request is not None else move

        return next_move

    usable = patch.object(attempt, "key_is_usable", lambda intent, declaration, *, now_us: True)
    return both(replaced(attempt, "next_move", wrap), usable)


@mutant("the commit records the amount that was asked")
def asked_amount_committed() -> Patch:
    def wrap(original: Any) -> Any:
        def commit(item: Any, executed: Any, mismatch: Any, common: Any) -> Any:
            return original(item, replace(executed, billed=item.money), None, common)

        return commit

    return replaced(changes, "_commit", wrap)


@mutant("a wrong amount does not stop the run")
def wrong_amount_goes_on() -> Patch:
    return patch.object(changes, "StopBatch", lambda *args, **more: None)
