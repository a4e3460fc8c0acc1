"""Business rules, look-ups, paging, statements and the side door."""

from __future__ import annotations

import csv
import io
from typing import Any

import orjson
import pytest

from payonce.providers.simulator import Call
from tests.unit.simulator.simfar import Far, answered, code_of


def test_a_charge_gives_back_no_more_than_it_took() -> None:
    """Too much is a coded 400; a second full refund is charge_already_refunded; the rest can still be refunded."""
    far = Far(charges={"ch_1": {"amount": 5000, "currency": "usd"}})
    assert answered(far.refund("a", charge="ch_1", amount=3000))[0] == 200
    assert code_of(far.refund("b", charge="ch_1", amount=3000)) == (400, "amount_too_large")
    assert answered(far.refund("c", charge="ch_1", amount=None))[1]["amount"] == 2000
    assert code_of(far.refund("d", charge="ch_1")) == (400, "charge_already_refunded")
    assert code_of(far.refund("e", charge="ch_1", currency="jpy")) == (400, "currency_mismatch")
    shown = far.get("/v1/charges/ch_1")
    assert (shown["amount"], shown["amount_refunded"], shown["currency"]) == (5000, 5000, "usd")


def test_a_disputed_charge_is_refused() -> None:
    """A dispute opened between two calls is met by the second."""
    far = Far()
    assert answered(far.refund())[0] == 200
    assert admin(far, "/_sim/charges", id="ch_r1", amount=9000, disputed=True) == 200
    assert code_of(far.refund()) == (400, "charge_disputed")
    assert far.get("/v1/charges/ch_r1")["disputed"] is True


def test_a_charge_and_its_payment_intent_are_one_target() -> None:
    """Refunds by payment intent count against the charge, set up or not."""
    far = Far(charges={"ch_1": {"amount": 100, "payment_intent": "pi_x"}})
    assert answered(far.post(payment_intent="pi_x", amount=60))[1]["charge"] == "ch_1"
    assert code_of(far.post(charge="ch_1", amount=60)) == (400, "amount_too_large")
    assert answered(far.post(payment_intent="pi_9", amount=1))[1]["charge"] == "ch_9"
    assert len(far.get("/v1/refunds?payment_intent=pi_x")["data"]) == 1


def test_the_same_amount_within_the_window_is_refused() -> None:
    """Another amount passes, and so does the same one after the window."""
    far = Far(same_amount_window="24h")
    assert answered(far.refund("a", charge="ch_1", amount=500))[0] == 200
    assert code_of(far.refund("b", charge="ch_1", amount=500)) == (400, "duplicate_transaction")
    assert answered(far.refund("b", charge="ch_1", amount=501))[0] == 200
    far.pass_ms(86_400_000)
    assert answered(far.refund("b", charge="ch_1", amount=500))[0] == 200


def test_forms_are_read_like_json() -> None:
    """metadata[ref] in a form body is the item's reference."""
    far = Far()
    headers = {"authorization": "Bearer x", "content-type": "application/x-www-form-urlencoded"}
    plan = far.world.handle(Call("POST", "/v1/refunds", headers, b"charge=ch_1&amount=7&metadata%5Bref%5D=r9"))
    assert answered(plan)[1]["metadata"] == {"ref": "r9"}
    assert far.executed() == [("r9", 7)]


@pytest.mark.parametrize("amount", [0, -1, 1.5, "1,000", "", True, 10**16])
def test_an_amount_is_a_positive_whole_number(amount: object) -> None:
    """Anything else is 400 and executes nothing."""
    far = Far()
    assert code_of(far.refund(amount=amount)) == (400, "parameter_invalid_integer")
    assert far.executed() == []


def test_payouts_and_transfers_execute() -> None:
    """Each has its own kind of id, and its list by destination."""
    far = Far()
    payout = answered(far.post("/v1/payouts", amount=5, currency="EUR", destination="ba_1", reference="p1"))[1]
    transfer = answered(far.post("/v1/transfers", amount=6, currency="eur", destination="acct_2"))[1]
    assert (payout["id"][:3], payout["currency"], transfer["id"][:3]) == ("po_", "eur", "tr_")
    assert [entry["id"] for entry in far.get("/v1/payouts?destination=ba_1")["data"]] == [payout["id"]]
    assert far.get(f"/v1/transfers/{transfer['id']}")["amount"] == 6
    assert code_of(far.post("/v1/payouts", amount=5)) == (400, "parameter_missing")


def test_an_invoice_goes_through_its_steps() -> None:
    """draft, open, paid; each step once, each under its own path."""
    far = Far()
    made = answered(far.post("/v1/invoices", amount=900, currency="usd", customer="cus_1", metadata={"ref": "i1"}))[1]
    path = f"/v1/invoices/{made['id']}"
    assert code_of(far.post(f"{path}/pay")) == (400, "invoice_not_open")
    assert answered(far.post(f"{path}/finalize"))[1]["status"] == "open"
    assert answered(far.post(f"{path}/pay"))[1]["status"] == "paid"
    assert code_of(far.post(f"{path}/pay")) == (400, "invoice_already_paid")
    assert far.get(path)["status"] == "paid"
    assert [effect.operation for effect in far.world.effects] == ["invoice", "invoice_finalize", "invoice_pay"]
    assert far.executed() == [("i1", 900)] * 3


def test_a_paid_call_is_billed_and_logged() -> None:
    """Tokens, a cost in USDC with six places, a usage entry, and a statement row whose credit follows the multiplier."""
    far = Far(multiplier="0.9", script={"c2": ["wrong_credit:1"]})
    made = answered(far.post("/v1/calls", model="m", input="hello", user="c1", amount=123))[1]
    assert (made["cost"], made["user"], made["usage"]["tokens"] > 0) == ("0.000123", "c1", True)
    assert answered(far.post("/v1/calls", model="m", input="hello", user="c2"))[1]["cost"] > "0.000000"
    assert [entry["id"] for entry in far.get("/v1/usage?user=c1")["data"]] == [made["id"]]
    row, wrong = csv.DictReader(io.StringIO(far.get("/v1/statement.csv").decode()))
    assert (row["cost"], row["official_price"], row["multiplier"]) == ("0.000123", "0.000123", "0.9")
    assert row["credit"] == "0.0001107"
    assert float(wrong["credit"]) > float(wrong["official_price"]) * 0.9


def test_executions_show_up_after_the_lag() -> None:
    """Lists, single reads and the charge's total are all behind; the true effects are not."""
    far = Far(lookup_lag="5s", charges={"ch_r1": {"amount": 9000}})
    made = answered(far.refund())[1]
    for after_ms, seen in ((4_999, 0), (1, 1)):
        far.pass_ms(after_ms)
        assert len(far.get("/v1/refunds?charge=ch_r1")["data"]) == seen
        assert (far.get(f"/v1/refunds/{made['id']}") != 404) == bool(seen)
        assert far.get("/v1/charges/ch_r1")["amount_refunded"] == 1250 * seen
        assert len(far.executed()) == 1


def test_a_provider_may_offer_no_lookup() -> None:
    """404 for lists and single reads; the charge and the statement stay."""
    far = Far(lookup=False)
    made = answered(far.refund())[1]
    assert far.get("/v1/refunds") == far.get(f"/v1/refunds/{made['id']}") == far.get("/v1/usage") == 404
    assert far.get("/v1/charges/ch_r1")["object"] == "charge"
    assert len(far.get("/v1/statement.json")["data"]) == 1


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_pages_add_up(limit: int) -> None:
    """Following the cursor yields every refund once, the newest first, and says when there is no more."""
    far = Far()
    for n in range(23):
        far.refund(f"r{n}", charge="ch_1" if n % 2 else "ch_2", amount=n + 1)
        far.pass_ms(1_000)
    for query, wanted in (("", range(23)), ("charge=ch_1&", range(1, 23, 2))):
        seen: list[int] = []
        page: Any = {"has_more": True, "data": []}
        while page["has_more"]:
            after = f"&starting_after={page['data'][-1]['id']}" if page["data"] else ""
            page = far.get(f"/v1/refunds?{query}limit={limit}{after}")
            assert len(page["data"]) <= limit
            seen += [entry["amount"] - 1 for entry in page["data"]]
        assert seen == list(wanted)[::-1]


def test_lists_filter_by_time() -> None:
    """created[gte] and created[lt] are whole seconds."""
    far = Far()
    for n in range(5):
        far.refund(f"r{n}")
        far.pass_ms(1_000)
    first = far.world.effects[0].executed_at // 1_000_000
    shown = far.get(f"/v1/refunds?created[gte]={first + 1}&created[lt]={first + 3}")["data"]
    assert [entry["created"] - first for entry in shown] == [2, 1]
    assert far.get("/v1/refunds?created[around]=1") == far.get("/v1/refunds?limit=0") == 400


def test_the_statement_has_a_row_for_every_execution_and_return() -> None:
    """Money that came back is a second row with the same id; the amounts add up to what is still out."""
    far = Far()
    first = answered(far.refund("a", key="k1"))[1]
    far.refund("b", amount=700)
    far.pass_ms(9_000)
    assert admin(far, "/_sim/settle", id=first["id"], status="failed") == 200
    rows = list(csv.DictReader(io.StringIO(far.get("/v1/statement.csv").decode())))
    assert [(row["type"], row["amount"], row["reference"]) for row in rows] == [
        ("refund", "1250", "a"),
        ("refund", "700", "b"),
        ("refund_failure", "-1250", "a"),
    ]
    assert rows[0]["refund_id"] == rows[2]["refund_id"] == first["id"]
    assert (rows[0]["idempotency_key"], rows[0]["created"][-8:]) == ("k1", ".000000Z")
    assert far.get(f"/v1/refunds/{first['id']}")["status"] == "failed"


def test_settlement_takes_its_time() -> None:
    """pending first, succeeded after settles_after."""
    far = Far(settles_after="1s")
    made = answered(far.refund())[1]
    far.pass_ms(1_000)
    assert (made["status"], far.get(f"/v1/refunds/{made['id']}")["status"]) == ("pending", "succeeded")


def test_the_side_door_tells_the_truth() -> None:
    """Effects and counts, duplicates by own reference among them; a reset forgets them all."""
    far = Far(latency="20ms")
    plans = [far.refund("a"), far.refund("a"), far.refund("b")]
    stats = far.get("/_sim/stats")
    assert (stats["calls"], stats["executed"], stats["duplicates"]) == (3, 3, 1)
    assert stats["duplicate_references"] == {"a": 1}
    assert (stats["max_in_flight"], stats["max_in_flight_per_target"], stats["max_calls_in_one_second"]) == (3, 2, 3)
    for plan in plans:
        far.world.done(plan.ticket)
    assert far.get("/_sim/stats")["in_flight"] == 0
    assert [effect["ref"] for effect in far.get("/_sim/effects?ref=b")] == ["b"]
    assert admin(far, "/_sim/reset") == 200
    assert far.get("/_sim/effects") == []


def test_behaviours_change_while_running() -> None:
    """Only what is named changes, and a mistake changes nothing."""
    far = Far(latency="20ms")
    assert admin(far, "/_sim/config", lookup=False) == 200
    assert admin(far, "/_sim/config", nonsense=1) == 400
    assert far.world.config.lookup is False
    assert far.world.config.latency_us == (20_000, 20_000)


def test_without_a_token_nothing_is_answered() -> None:
    """401 without a bearer token, unless the configuration does not ask for one."""
    assert code_of(Far().post(token=None, charge="ch_1", amount=1)) == (401, "api_key_invalid")
    assert answered(Far(require_auth=False).post(token=None, charge="ch_1", amount=1))[0] == 200


def admin(far: Far, path: str, **body: Any) -> int:
    """The status of an administrative call."""
    return answered(far.world.handle(Call("POST", path, {}, orjson.dumps(body))))[0]
