"""How a run ended, in words and in JSON: counts that add up, money, what is left to a person, what the exit code means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from payonce.cli.screen import Screen
from payonce.cli.words import STATE_STYLE, counts, money_words
from payonce.core.model import Status
from payonce.core.states import BatchState
from payonce.engine.run import RunOutcome
from payonce.service.report import status_json

MEANING = {
    0: "every item is committed or skipped",
    1: "finished, but some items are refused or unknown",
    3: "halted: the ledger could not be read or written; answers that were on their way are in the spool",
    4: "stopped by a budget, a limit on refusals, or the provider",
    75: "interrupted; the same command goes on",
}


def outcome_json(
    outcome: RunOutcome, *, batch: str, status: Status | None, unknown: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The last document of ``payonce run --json``: the status, and how the run ended."""
    shown: dict[str, Any] = (
        status_json(status) if status is not None else {"batch": batch, "items": None, "money": None, "calls": None}
    )
    shown["state"] = outcome.state.value
    shown["reason"] = outcome.reason or shown.get("reason")
    shown["reason_code"] = outcome.code or shown.get("reason_code")
    shown["exit_code"] = outcome.exit_code
    shown["spooled"] = outcome.spooled
    shown["lost"] = list(outcome.lost)
    shown["unknown"] = [item["item"] for item in unknown]
    return shown


def show_outcome(
    screen: Screen,
    outcome: RunOutcome,
    *,
    batch: str,
    file: str,
    status: Status | None,
    unknown: Sequence[Mapping[str, Any]],
) -> None:
    """The end of ``payonce run`` for people."""
    screen.line(f"{batch}: {outcome.state.value}", style=STATE_STYLE.get(outcome.state.value))
    if outcome.reason:
        screen.line(f"  reason   {outcome.reason}" + (f" ({outcome.code})" if outcome.code else ""))
    if status is not None:
        shown = status_json(status)
        screen.line(f"  items    {counts(shown['items'])}")
        for currency, money in shown["money"].items():
            screen.line(f"  money    {money_words(currency, money)}")
        calls = shown["calls"]
        screen.line(
            f"  calls    {calls['sent']} sent, {calls['lookups']} look-ups, {calls['rate_limited']} rate limited"
        )
        _show_unknown(screen, unknown, batch=batch, count=shown["items"]["unknown"])
        if shown["items"]["refused"]:
            screen.line(f"  refused  payonce items {batch} --state refused; payonce retry {batch} ITEM --reason ...")
    if outcome.spooled:
        screen.line(f"  spool    {outcome.spooled} answers, which the next start takes in")
    for answer in outcome.lost:
        screen.error(f"neither ledger nor spool took this answer; keep it: {answer}")
    screen.line(f"  exit     {outcome.exit_code}: {MEANING.get(outcome.exit_code, '')}")
    if outcome.exit_code in (3, 75):
        screen.next_step(f"payonce run {file}")
    elif outcome.state is BatchState.STOPPED or outcome.state is BatchState.PAUSED:
        screen.next_step(f"look into the reason; then payonce resume {batch} --reason ... and payonce run {file}")


def _show_unknown(screen: Screen, unknown: Sequence[Mapping[str, Any]], *, batch: str, count: int) -> None:
    """What cannot be decided by rule, and what a person can do about it."""
    if not unknown:
        return
    screen.line(f"  unknown  {count} items may have been executed; they are never sent again by themselves:")
    for item in unknown:
        amount = f"{item['amount']} {item['currency']}" if item["amount"] else "no amount"
        screen.line(f"    {item['item']}  {amount}  {item['code'] or ''} {item['message'] or ''}".rstrip())
    if count > len(unknown):
        screen.line(f"    and {count - len(unknown)} more: payonce items {batch} --state unknown")
    screen.line(f"    look each one up at the provider, then: payonce resolve {batch} ITEM --as ... --reason ...")
