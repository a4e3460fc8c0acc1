"""How a run ended, in words and in JSON: counts that add up, money, what is left to a person, what the exit code means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any

from payonce.cli.screen import Screen
from payonce.cli.words import STATE_STYLE, counts, money_words, show_findings, some
from payonce.core.model import Status
from payonce.core.states import BatchState, ItemState
from payonce.engine.run import RunOutcome
from payonce.service.report import status_json

MEANING = {
    0: "every item is committed or skipped",
    1: "finished, but some items are refused or unknown, or the provider's account differs",
    3: "halted: the ledger could not be read or written; answers that were on their way are in the spool",
    4: "stopped by a budget, a limit on refusals, or the provider, or another amount was billed",
    75: "interrupted; the same command goes on",
}


def outcome_json(
    outcome: RunOutcome,
    *,
    batch: str,
    status: Status | None,
    unknown: Sequence[Mapping[str, Any]],
    findings: int | None = None,
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
    shown["findings_open"] = findings
    shown["trouble"] = status.trouble if status is not None else None
    shown["last_seen"] = outcome.status is None
    return shown


def show_outcome(
    screen: Screen,
    outcome: RunOutcome,
    *,
    batch: str,
    file: str,
    status: Status | None,
    unknown: Sequence[Mapping[str, Any]],
    findings: int | None = None,
    reconciled: Mapping[str, Any] | None = None,
) -> None:
    """The end of ``payonce run`` for people."""
    screen.prose(f"{batch}: {outcome.state.value}", style=STATE_STYLE.get(outcome.state.value))
    if outcome.reason:
        screen.prose(f"  reason   {outcome.reason}" + (f" ({outcome.code})" if outcome.code else ""))
    if status is not None and status.trouble and outcome.state is not BatchState.FINISHED:
        screen.prose(f"  trouble  {status.trouble}")
    if outcome.status is None:
        told = "no counts are known" if status is None else "these counts were read while it ran"
        screen.prose(f"  unread   the ledger cannot be read now; {told}")
    if status is not None:
        shown = status_json(status)
        screen.prose(f"  items    {counts(shown['items'])}")
        for currency, money in shown["money"].items():
            screen.prose(f"  money    {money_words(currency, money)}")
        calls = shown["calls"]
        screen.prose(
            f"  calls    {calls['sent']} sent, {some(calls['lookups'], 'look-up')}, {calls['rate_limited']} rate limited"
        )
        _show_unknown(screen, unknown, batch=batch, count=shown["items"]["unknown"])
        if shown["items"]["refused"]:
            screen.prose(f"  refused  payonce items {batch} --state refused; payonce retry {batch} ITEM --reason TEXT")
    if reconciled is not None:
        _show_reconciled(screen, reconciled, file=file)
    show_findings(screen, findings or 0, batch=batch)
    if outcome.spooled:
        screen.prose(f"  spool    {some(outcome.spooled, 'answer')}, taken in by the next start")
    for answer in outcome.lost:
        screen.error(f"neither ledger nor spool took this answer; keep it: {answer}")
    screen.prose(f"  exit     {outcome.exit_code}: {_meaning(outcome, status)}")
    step = next_after(outcome, batch=batch, file=file, held=status is not None and status.batch.held)
    if step:
        screen.next_step(step)


def _meaning(outcome: RunOutcome, status: Status | None) -> str:
    """What the exit code means here."""
    pending = 0 if status is None else status.count(ItemState.PENDING)
    if outcome.exit_code == 75 and pending and outcome.code != "signal":
        return f"{some(pending, 'item')} still pending; the same command decides what became of them"
    return MEANING.get(outcome.exit_code, "")


def _show_reconciled(screen: Screen, found: Mapping[str, Any], *, file: str) -> None:
    """What the provider's own account of the batch says, or why it was not asked."""
    if not found["asked"]:
        screen.prose(f"  provider not asked: {found['why']}")
        return
    classes = ", ".join(f"{count} {kind}" for kind, count in found["classes"].items() if count) or "nothing to compare"
    screen.prose(f"  provider {classes}", style={"fg": "yellow"} if found["found"] else None)
    if found["classes"].get("not_covered"):
        screen.prose(
            "           not_covered: too recent for the look-up to show it for certain, or from before the batch began;"
        )
        screen.prose(f"           payonce reconcile {quote(file)} --from-provider asks again")
    for currency, sums in found["balance"].items():
        screen.prose(f"           {sums['ledger']} + {sums['explained']} = {sums['statement']} {currency}")
    if found["found"]:
        screen.prose(f"           payonce reconcile {quote(file)} --from-provider shows both sides")


def next_after(outcome: RunOutcome, *, batch: str, file: str, held: bool) -> str | None:
    """The one right way on after a run, by why it ended; None where nothing is left to do but what the counts say."""
    again = f"payonce run {quote(file)}"
    if outcome.exit_code in (3, 75):
        return again
    if outcome.state is BatchState.PAUSED:
        return f"payonce resume {batch}, then {again}"
    if outcome.state is not BatchState.STOPPED:
        return None
    if held:
        return f"look into the reason; then payonce resume {batch} --reason TEXT, and {again}"
    match outcome.code:
        case "budget":
            return f"raise [limits] budget in {file}, then {again}"
        case "targets_held":
            return f"payonce resolve {batch} ITEM --as ... --reason TEXT for the unknown items, then {again}"
        case "stop_after_refusals" | "stop_after_consecutive":
            return f"payonce items {batch} --state refused shows why; when that is put right, {again}"
        case _:
            return f"when the cause is gone, {again}"


def _show_unknown(screen: Screen, unknown: Sequence[Mapping[str, Any]], *, batch: str, count: int) -> None:
    """What cannot be decided by rule, and what a person can do about it."""
    if not unknown:
        return
    screen.prose(f"  unknown  {some(count, 'item')} may have been executed, never sent again without your word:")
    for item in unknown:
        amount = f"{item['amount']} {item['currency']}" if item["amount"] else "no amount"
        screen.prose(f"    {item['item']}  {amount}  {item['code'] or ''} {item['message'] or ''}".rstrip())
    if count > len(unknown):
        screen.prose(f"    and {count - len(unknown)} more: payonce items {batch} --state unknown")
    screen.prose(f"    look each one up at the provider, then: payonce resolve {batch} ITEM --as ... --reason ...")
