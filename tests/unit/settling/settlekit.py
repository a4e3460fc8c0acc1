"""A ledger with committed items, and webhooks of each provider in files as a person would keep them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from payonce.core.commands import BatchCommand, Change, Control
from payonce.core.model import Actor, BatchSpec, NewItem, Worker
from payonce.core.money import Money
from payonce.core.states import ItemEvent, Settlement
from payonce.ledger.memory import MemoryLedger
from payonce.service.settling import Settled, Wishes, settle
from payonce.testing.ledger_world import intent

ACTOR = Actor(user="ops", host="desk", pid=1)
STRIPE_SECRET = "whsec_marked_secret"
ADYEN_KEY = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
ENVIRON = {"STRIPE_WEBHOOK_SECRET": STRIPE_SECRET, "ADYEN_HMAC_KEY": ADYEN_KEY}
MONEY = Money("12.50", "USD")


@dataclass
class Desk:
    """One batch of three items: r1 and r2 committed as ref-1 and ref-2, r3 pending."""

    ledger: MemoryLedger
    folder: Path
    provider: str
    worker: Worker

    @classmethod
    def of(cls, folder: Path, provider: str = "stripe", mode: str | None = "test") -> Desk:
        """A sealed batch with its items where they are."""
        ledger = MemoryLedger()
        spec = BatchSpec("b", "refund", provider, mode=mode, targets=True)
        items = [NewItem(f"r{n}", MONEY, target=f"target-{n}") for n in (1, 2, 3)]
        ledger.seal(spec, items, seal="s", actor=ACTOR)
        worker = ledger.join("b", actor=ACTOR, lease_us=60_000_000)
        ledger.control("b", Control(BatchCommand.START), actor=ACTOR, worker=worker)
        for n in (1, 2, 3):
            ledger.write(worker, [intent(n, ItemEvent.INTENT, now_us=time.time_ns() // 1000)])
        for n in (1, 2):
            done = Change(n, ItemEvent.COMMIT, reference=f"ref-{n}", billed=MONEY, settlement=Settlement.PENDING)
            ledger.write(worker, [done])
        return cls(ledger, folder, provider, worker)

    def file(self, name: str, *entries: Any) -> Path:
        """A file of entries, a line each."""
        path = self.folder / name
        path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        return path

    def settle(self, *paths: Path, **wishes: Any) -> Settled:
        """Takes them in."""
        wanted = Wishes(**{"environ": ENVIRON, **wishes})
        return settle(self.ledger, "b", paths, wishes=wanted, actor=ACTOR)

    def settlement(self, item: str = "r1") -> str:
        """Where an item's money stands."""
        found = self.ledger.item("b", item)
        assert found is not None
        return found.settlement.value

    def events(self) -> list[dict[str, Any]]:
        """The settle events of the trail."""
        bodies = [json.loads(event.body) for event in self.ledger.events("b", limit=1000)]
        return [body for body in bodies if body["type"] == "settle"]


def stripe_event(status: str, *, number: int = 1, event: str = "evt_1", **changed: Any) -> dict[str, Any]:
    """refund.updated."""
    about = {
        "id": f"ref-{number}",
        "object": "refund",
        "amount": 1250,
        "currency": "usd",
        "charge": f"target-{number}",
        "status": status,
        "metadata": {"payonce_item": f"r{number}", "payonce_batch": "b"},
        **changed,
    }
    made = {"id": event, "object": "event", "type": "refund.updated", "created": 1_800_000_000, "livemode": False}
    return {**made, "data": {"object": about}}


def stripe_signed(event: dict[str, Any], *, secret: str = STRIPE_SECRET, when: int = 1_800_000_100) -> dict[str, Any]:
    """An event with the headers it came with."""
    body = json.dumps(event, indent=2)
    made = hmac.new(secret.encode(), f"{when}.{body}".encode(), hashlib.sha256).hexdigest()
    return {"headers": {"Stripe-Signature": f"t={when},v1=00ff,v1={made}"}, "body": body}


def adyen_event(code: str, success: str, *, key: str = ADYEN_KEY, **changed: Any) -> dict[str, Any]:
    """A standard webhook of one notification, signed."""
    item: dict[str, Any] = {
        "pspReference": "ref-1",
        "originalReference": "target-1",
        "merchantAccountCode": "Shop",
        "merchantReference": "r1",
        "amount": {"value": 1250, "currency": "USD"},
        "eventCode": code,
        "success": success,
        "eventDate": "2026-11-30T08:00:00+01:00",
        **changed,
    }
    signed = ":".join(
        [
            item["pspReference"],
            item["originalReference"],
            "Shop",
            item["merchantReference"],
            "1250",
            "USD",
            code,
            success,
        ]
    )
    made = hmac.new(bytes.fromhex(key), signed.encode(), hashlib.sha256).digest()
    item["additionalData"] = {"hmacSignature": base64.b64encode(made).decode()}
    return {"live": "false", "notificationItems": [{"NotificationRequestItem": item}]}


def paypal_event(status: str, **changed: Any) -> dict[str, Any]:
    """PAYMENT.CAPTURE.REFUNDED."""
    about = {
        "id": "ref-1",
        "status": status,
        "custom_id": "r1",
        "amount": {"value": "12.50", "currency_code": "USD"},
        **changed,
    }
    made = {"id": "WH-1", "event_type": "PAYMENT.CAPTURE.REFUNDED", "create_time": "2026-11-30T08:00:00Z"}
    return {**made, "resource": about}
