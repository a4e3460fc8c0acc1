"""Look-ups: complete and well-formed, or failed; never a short list."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payonce.core.money import Money
from payonce.core.outcome import Execution, Found, LookupFailed
from payonce.core.states import Settlement
from payonce.providers.transport import Answer, Fault
from tests.unit.providers.httpkit import LOOKUP, REFUND, TOKEN, Bench, answer, item

ENTRY: dict[str, Any] = {"id": "re_1", "amount": 1250, "currency": "usd", "created": 1796038358, "status": "succeeded"}


def table(**changes: Any) -> dict[str, Any]:
    return {**REFUND, "lookup": {**LOOKUP, **changes}}


def page(*entries: dict[str, Any], **more: Any) -> Answer:
    return answer(200, json.dumps({"data": list(entries), **more}))


def test_an_execution_with_all_that_tells_whose_it_is() -> None:
    """Reference, money, own reference, key, time."""
    entry = {**ENTRY, "metadata": {"ref": "r-1", "payonce_key": "k"}}
    bench = Bench(table(), page(entry))
    found = bench.look_up()
    assert isinstance(found, Found)
    assert found.executions == (
        Execution("re_1", Money("12.50", "USD"), own_reference="r-1", key="k", at_us=1796038358_000000),
    )
    assert bench.transport.asked[0].path == "/v1/refunds?charge=ch_1"
    assert bench.transport.asked[0].method == "GET"
    assert found.status == 200


def test_nothing_found_is_an_answer() -> None:
    """An empty list on a well-formed page."""
    found = Bench(table(), page()).look_up()
    assert isinstance(found, Found)
    assert found.executions == ()


def test_failed_executions_are_told_apart() -> None:
    """By the provider's own words."""
    found = Bench(table(), page({**ENTRY, "status": "failed"}, {**ENTRY, "id": "re_2", "status": "odd"})).look_up()
    assert isinstance(found, Found)
    assert {(e.failed, e.settlement) for e in found.executions} == {(True, Settlement.FAILED), (False, Settlement.NONE)}


def test_oldest_first_where_times_are_told() -> None:
    """Lists are newest first at most APIs."""
    entries = [{**ENTRY, "id": f"re_{n}", "created": 100 - n} for n in range(3)]
    found = Bench(table(), page(*entries)).look_up()
    assert isinstance(found, Found)
    assert [e.reference for e in found.executions] == ["re_2", "re_1", "re_0"]
    at_once = [{**ENTRY, "id": "re_9", "created": 9}, *({**ENTRY, "id": f"re_{n}", "created": 5} for n in range(2))]
    for listed, expected in ((at_once, ["re_1", "re_0", "re_9"]), (at_once[::-1], ["re_1", "re_0", "re_9"])):
        found = Bench(table(), page(*listed)).look_up()
        assert isinstance(found, Found)
        assert [e.reference for e in found.executions] == expected
    untimed = Bench(table(time=None), page(*entries)).look_up()
    assert isinstance(untimed, Found)
    assert [e.reference for e in untimed.executions] == ["re_0", "re_1", "re_2"]


def test_one_object_is_a_list_of_one() -> None:
    """A read of a single resource."""
    found = Bench(table(found="@"), answer(200, json.dumps(ENTRY))).look_up()
    assert isinstance(found, Found)
    assert len(found.executions) == 1


@pytest.mark.parametrize(
    "reply",
    [
        answer(200, b""),
        answer(200, b"<html>"),
        answer(200, b"{}"),
        answer(200, b'{"data":null}'),
        answer(200, b'{"data":"x"}'),
        answer(200, b'{"data":[{}]}'),
        answer(200, b'{"data":[null]}'),
        answer(200, b'{"data":[{"id":""}]}'),
        answer(200, b'{"data":[{"id":"a","amount":"12,5"}]}'),
        answer(200, b'{"data":[{"id":"a","amount":1.5}]}'),
        answer(200, b'{"data":[{"id":"a","amount":1,"currency":"xxx"}]}'),
        answer(200, b'{"data":[{"id":"a","created":"soon"}]}'),
        answer(204, b""),
        answer(206, b'{"data":[]}'),
        answer(302, b""),
        answer(400, b'{"data":[]}'),
        answer(404, b'{"data":[]}'),
        answer(500, b""),
        Answer(200, (), b'{"data":[]}', truncated=True),
        Fault("timeout", "late"),
        Fault("connect_refused", "no", sent=False, load=True),
    ],
    ids=repr,
)
def test_anything_else_proves_nothing(reply: Answer | Fault) -> None:
    """It failed; an absence is never concluded from it."""
    assert isinstance(Bench(table(), reply).look_up(), LookupFailed)


def test_not_found_means_none_only_where_it_is_said() -> None:
    """Some APIs answer 404 for an empty list, others for a typing error."""
    found = Bench(table(not_found_means_none=True), answer(404, b"")).look_up()
    assert isinstance(found, Found)
    assert found.executions == ()


def test_load_and_bad_credentials_are_told() -> None:
    """As for calls."""
    limited = Bench(table(), answer(429, b"", {"Retry-After": "3"})).look_up()
    assert limited == LookupFailed(
        "rate_limited", "the look-up was answered with 429", load=True, retry_after_us=3_000_000
    )
    refused = Bench(table(), answer(401, b"")).look_up()
    assert isinstance(refused, LookupFailed)
    assert refused.stop


def test_all_pages_are_read_by_cursor() -> None:
    """Up to the one that says it is the last."""
    bench = Bench(
        table(next="data[-1].id", cursor_param="starting_after", more="has_more"),
        page({**ENTRY, "id": "a b"}, has_more=True),
        page({**ENTRY, "id": "c"}, has_more=False),
    )
    found = bench.look_up()
    assert isinstance(found, Found)
    assert len(found.executions) == 2
    assert [r.path for r in bench.transport.asked] == [
        "/v1/refunds?charge=ch_1",
        "/v1/refunds?charge=ch_1&starting_after=a%20b",
    ]
    assert found.response is not None
    assert found.response.count(b'"data"') == 2


@pytest.mark.parametrize("address", ["/v1/refunds?page=2", "https://api.example.com/v1/refunds?page=2"])
def test_all_pages_are_read_by_address(address: str) -> None:
    """Relative or absolute, at the same server."""
    bench = Bench(table(next="next"), page(ENTRY, next=address), page())
    assert isinstance(bench.look_up(), Found)
    assert bench.transport.asked[1].path == "/v1/refunds?page=2"


@pytest.mark.parametrize(
    "address", ["https://evil.example.com/v1", "http://api.example.com/v1", "//evil.example.com/", "v1"]
)
def test_a_page_elsewhere_is_not_followed(address: str) -> None:
    """Credentials go with every request."""
    bench = Bench(table(next="next"), page(ENTRY, next=address), page())
    assert isinstance(bench.look_up(), LookupFailed)
    assert len(bench.transport.asked) == 1


def test_a_list_that_does_not_end_has_failed() -> None:
    """Never a short list: neither at the limit of pages nor in a circle."""
    endless = [page({**ENTRY, "id": f"re_{n}"}, has_more=True) for n in range(9)]
    paged = {"next": "data[-1].id", "cursor_param": "after", "more": "has_more"}
    bench = Bench(table(max_pages=3, **paged), *endless)
    assert isinstance(bench.look_up(), LookupFailed)
    assert len(bench.transport.asked) == 3
    circle = Bench(table(**paged), page(ENTRY, has_more=True), page(ENTRY, has_more=True), page())
    assert isinstance(circle.look_up(), LookupFailed)
    lost = Bench(table(**paged), page(has_more=True))
    assert isinstance(lost.look_up(), LookupFailed)


def test_a_fault_on_a_later_page_fails_the_whole() -> None:
    """The first page alone would be a short list."""
    paged = {"next": "data[-1].id", "cursor_param": "after", "more": "has_more"}
    bench = Bench(table(**paged), page(ENTRY, has_more=True), answer(404, b""))
    assert isinstance(bench.look_up(), LookupFailed)
    lenient = Bench(table(not_found_means_none=True, **paged), page(ENTRY, has_more=True), answer(404, b""))
    assert isinstance(lenient.look_up(), LookupFailed)


def test_a_look_up_that_cannot_be_asked_has_failed() -> None:
    """An item without the field."""
    bare = Bench(table(path="/v1/refunds?x={missing}")).look_up(item())
    assert isinstance(bare, LookupFailed)
    assert bare.code == "template_unfilled"


def test_secrets_are_taken_out_of_what_is_kept() -> None:
    """Of pages and of messages."""
    found = Bench(table(), page({**ENTRY, "note": TOKEN})).look_up()
    assert isinstance(found, Found)
    assert TOKEN not in repr(found)
