"""One item for people: where it stands, what comes next, and a line for each thing that happened to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from payonce.cli.words import clock, some

_MOST: Final = 100  # characters of what a provider said
# What an event is, said so that nobody has to know the words of the trail.
_SAID: Final = {
    "intent": "may be sent from now on",
    "resend": "may be sent once more, same key and bytes",
    "takeover": "its worker was dead, another one has it",
    "unresolved": "no answer that decides",
    "lookup": "looked up at the provider",
    "step_done": "one call of several is done",
    "commit": "executed",
    "refuse": "refused",
    "not_executed": "surely not executed, planned again",
    "pay_again": "may have been executed; paid for once more, as the batch says",
    "undecided": "no rule decides it: a person has to",
    "skip": "skipped",
    "retry": "put back to planned",
    "settle": "the money moved on",
    "finding": "a finding was opened",
    "finding_closed": "a finding was closed",
    "erased": "personal data was erased",
}


def header(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The facts of an item by name, those that there are, with the one next step last."""
    facts, intent = found["item"], found["intent"] or {}
    if facts["amount"] is not None:
        billed = f", billed {facts['billed']} {facts['billed_currency']}" if facts["billed"] else ""
        yield "amount", f"{facts['amount']} {facts['currency']}{billed}"
    elif facts["billed"]:
        yield "cost", f"{facts['billed']} {facts['billed_currency']}"
    if facts["target"] != facts["item"]:
        yield "target", facts["target"]
    key = intent.get("key") or next((e["key"] for e in reversed(found["events"]) if e.get("key")), None)
    if facts["reference"]:
        yield "reference", facts["reference"]
    if key:
        yield "key", key
    if facts["settlement"] != "none":
        yield "settlement", facts["settlement"]
    if facts["attempts"]:
        again = f", generation {facts['generation']}" if facts["generation"] else ""
        yield "attempts", f"{facts['attempts']}{again}"
    if facts["code"]:
        yield "why", " ".join(filter(None, (facts["code"], facts["message"])))
    if intent.get("send_by"):
        yield "sent", f"between {clock(intent['sent'])} and {clock(intent['send_by'])}, if at all"
    if intent.get("retry_at"):
        yield "waits", f"until {clock(intent['retry_at'])}"
    if found["next"]:
        yield "next", found["next"]


def happened(event: Mapping[str, Any]) -> str:
    """One event in a short line, without its time and number."""
    kind = str(event.get("type", "?"))
    data = event["data"] if isinstance(event.get("data"), dict) else {}
    parts = [_SAID.get(kind, kind)]
    if kind in ("intent", "resend"):
        parts += [f"{name} {event[name]}" for name in ("attempt", "generation", "step") if event.get(name)]
    if kind == "finding":
        parts.append(str(event.get("class", "")))
    if event.get("code"):
        text = " ".join(str(event[name]) for name in ("code", "message") if event.get(name))
        parts.append(text if len(text) <= _MOST else text[: _MOST - 1] + "…")
    parts += [f"{name} {event[name]}" for name in ("reference", "settlement") if event.get(name)]
    if event.get("billed") and kind == "commit":
        parts.append(f"billed {event['billed']} {event.get('billed_currency') or event.get('currency', '')}")
    parts += _call(data)
    if event.get("wait_until"):
        parts.append(f"not before {clock(event['wait_until'])}")
    if isinstance(event.get("actor"), dict):
        who = event["actor"]
        parts.append(f"by {who.get('user', '?')}@{who.get('host', '?')}")
    if event.get("reason"):
        parts.append(f"because: {event['reason']}")
    return "; ".join(part for part in parts if part)


def _call(data: Mapping[str, Any]) -> Iterator[str]:
    """What the evidence says of the call: how it was answered and how long that took; what a look-up showed."""
    if data.get("status"):
        yield f"status {data['status']}"
    if data.get("sent") is False:
        yield "no byte of it left"
    elif data.get("start") and data.get("end"):
        from payonce.core.events import from_iso
        from payonce.service.durations import duration_text

        try:
            yield f"in {duration_text(max(0, from_iso(data['end']) - from_iso(data['start'])))}"
        except (ValueError, TypeError):
            return
    if data.get("request_id"):
        yield f"its id {data['request_id']}"
    shown = data.get("lookup")
    if isinstance(shown, dict) and "shown" in shown:
        yield f"{some(shown['shown'], 'execution')} shown"
