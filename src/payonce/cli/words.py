"""Sentences and tables for people, made from the same JSON documents that programs read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payonce.cli.screen import Screen
from payonce.core.wording import some as some

STATE_STYLE: dict[str, dict[str, Any]] = {
    "committed": {"fg": "green"},
    "finished": {"fg": "green"},
    "refused": {"fg": "red"},
    "unknown": {"fg": "yellow", "bold": True},
    "pending": {"fg": "cyan"},
    "running": {"fg": "cyan"},
    "stopped": {"fg": "red", "bold": True},
    "halted": {"fg": "red", "bold": True},
    "paused": {"fg": "yellow"},
    "interrupted": {"fg": "yellow"},
    "cancelled": {"dim": True},
    "skipped": {"dim": True},
}
ITEM_STATES = ("planned", "pending", "committed", "refused", "unknown", "skipped")
BATCH_STATES = ("sealed", "running", "paused", "stopped", "interrupted", "halted", "finished", "cancelled")


def batch_state(status: Mapping[str, Any]) -> str:
    """A batch's state in words: one that items are added to one by one has no process that runs it, it is open."""
    return "open" if status["open"] and status["state"] == "running" else str(status["state"])


def show_status(screen: Screen, status: Mapping[str, Any]) -> None:
    """One batch: its state and why, its counts, which add up, its money, calls, times and pace."""
    screen.prose(f"{status['batch']}: {batch_state(status)}", style=STATE_STYLE.get(status["state"]))
    if status["state"] == "interrupted":
        screen.prose("  process  no process is working on it; the same command goes on")
    if status["reason"]:
        screen.prose(
            f"  reason   {status['reason']}" + (f" ({status['reason_code']})" if status["reason_code"] else "")
        )
    account = f", account {status['account']}" if status["account"] else ""
    mode = f" ({status['mode']})" if status["mode"] else ""
    screen.prose(f"  what     {status['operation']} through {status['provider']}{account}{mode}")
    screen.prose(f"  items    {counts(status['items'])}")
    for currency, money in status["money"].items():
        screen.prose(f"  money    {money_words(currency, money)}")
    calls = status["calls"]
    limited = f", {calls['rate_limited']} answered with a rate limit" if calls["rate_limited"] else ""
    screen.prose(f"  calls    {calls['sent']} sent, {some(calls['lookups'], 'look-up')}{limited}")
    screen.prose(f"  time     {times(status)}")
    show_costs(screen, status["cost"])
    show_findings(screen, status["findings_open"], batch=status["batch"])


def show_findings(screen: Screen, count: int, *, batch: str) -> None:
    """Findings that wait for a person, if there are any."""
    if count:
        screen.prose(f"  findings {some(count, 'finding')} open: payonce findings {batch}", style={"fg": "yellow"})


def show_costs(screen: Screen, cost: Mapping[str, Mapping[str, Any]]) -> None:
    """What the calls of a batch cost, a line or two a currency."""
    for code, facts in cost.items():
        parts = [f"{facts['spent']} {code} spent on {some(facts['items'], 'item')}"]
        if facts["reserved"].strip("0."):
            parts.append(f"{facts['reserved']} reserved")
        if facts["left"] is not None:
            parts.append(f"{facts['left']} left")
        if facts["per_item"] is not None:
            parts.append(f"{facts['per_item']} an item")
        if facts["projected"] is not None:
            parts.append(f"{facts['projected']} projected")
        screen.prose(f"  cost     {', '.join(parts)}")
        if facts["over_reserve"]:
            screen.prose(f"  cost     {some(facts['over_reserve'], 'item')} cost more than was reserved")
        if facts["paid_again"]:
            of = f" of {facts['pay_again_limit']}" if facts["pay_again_limit"] else ""
            screen.prose(
                f"  again    {some(facts['paid_again'], 'call')} released to be paid for again: up to "
                f"{facts['paid_again_amount']}{of} {code} may be paid twice",
                style={"fg": "yellow"},
            )


def counts(items: Mapping[str, int]) -> str:
    """``1000 = 997 committed + 2 refused + 1 unknown``: every item is in exactly one state."""
    parts = [f"{items[state]} {state}" for state in ITEM_STATES if items[state]]
    return f"{items['total']} = " + (" + ".join(parts) if parts else "0")


def money_words(currency: str, money: Mapping[str, str | None]) -> str:
    """Committed of planned, what is reserved, and the budget if there is one."""
    text = f"{money['committed']} of {money['planned']} {currency} committed"
    if money["reserved"] and money["reserved"].strip("0."):
        text += f", {money['reserved']} reserved for pending and unknown items"
    if money["budget"] is not None:
        text += f"; budget {money['budget']}"
    return text


def times(status: Mapping[str, Any]) -> str:
    """When it was sealed, started and ended, and how long it will take at the present pace."""
    if not status["started_at"]:
        return f"sealed {clock(status['sealed_at'])}, not started"
    text = f"started {clock(status['started_at'])}"
    if status["ended_at"]:
        text += f", ended {clock(status['ended_at'])}"
    if status.get("rate"):
        text += f"; {status['rate']:.1f} items/s, about {seconds(status['eta_seconds'])} left"
    return text


def clock(iso: str | None) -> str:
    """``2026-11-30 08:00:00 UTC``."""
    return "never" if not iso else f"{iso[:10]} {iso[11:19]} UTC"


def seconds(value: float | None) -> str:
    """A duration in words, ``?`` where it is not known."""
    from payonce.service.durations import duration_text

    return "?" if value is None else duration_text(int(value * 1_000_000))
