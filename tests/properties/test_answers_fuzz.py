"""Answers that no provider should give, through every adapter: never an error of ours, never Executed or Refused from
garbage.

What counts as garbage is judged here without the adapters: an execution is believed only with a success status, a body
that is JSON, and the reference, word for word, among its values; a refusal only with its own code among them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from payonce.core.model import Item
from payonce.core.money import Money
from payonce.core.outcome import Executed, Found, LookupFailed, Outcome, Refused
from payonce.providers import registry_simulator
from payonce.providers.registry import Wanted
from payonce.providers.transport import Answer, TransportSettings
from payonce.testing.provider_replies import SINGLE_REPLIES
from payonce.testing.provider_rig import Bench, Rig, answer
from tests.conformance import test_providers as plain
from tests.properties.mutations import ODD, encode, json_bodies, places, put, torn_bytes, without
from tests.unit.adyen import adyenkit, test_adyen_suite
from tests.unit.paypal import paypalkit, test_paypal_suite
from tests.unit.stripe import stripekit, test_stripe_suite

T = TypeVar("T")
REPLIES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "cases" / "provider_replies.jsonl")
    .read_text("utf-8")
    .splitlines()
]
STATUSES = [
    200,
    201,
    202,
    204,
    206,
    299,
    301,
    400,
    401,
    402,
    403,
    404,
    409,
    410,
    418,
    422,
    429,
    451,
    499,
    500,
    502,
    503,
    504,
    520,
    599,
]
HEADERS: list[dict[str, str]] = [
    {}, {}, {}, {"Idempotent_Replayed": "true"}, {"Retry_After": "Thu, 99 Foo 2026"}, {"Retry_After": "9" * 40},
    {"Content_Type": "text/html"}, {"Content_Encoding": "gzip"}, {"Request_Id": "\x7f"}, {"Stripe_Should_Retry": "perhaps"},
]  # fmt: skip
KEY = "k" * 36
UNSHRUNK = (Phase.explicit, Phase.generate)  # quick, and the same each time


def plain_rig() -> Rig:
    """Any HTTP API, described in a batch file."""
    return Rig(
        build=plain.build,
        item=lambda _: Item(1, "r1", "ch_1", Money("12.50", "USD"), {}),
        executed=lambda _: answer(200, plain.REFUND),
        cases=plain.CASES,
        secrets=(),
    )


def simulator_rig() -> Rig:
    """The built-in provider's own adapter."""

    def build(make: Callable[[TransportSettings], Any]) -> Any:
        provider = registry_simulator.build(
            {"kind": "simulator", "url": "http://127.0.0.1:1"}, Wanted("refund", "b", environ={})
        )
        provider._transport = make(provider._config.transport)
        return provider

    body = {
        "id": "re_1",
        "object": "refund",
        "charge": "ch_1",
        "amount": 1250,
        "currency": "usd",
        "status": "succeeded",
    }
    return Rig(
        build=build,
        item=lambda _: Item(1, "r1", "ch_1", Money("12.50", "USD"), {}),
        executed=lambda _: answer(200, body),
        cases=(),
        secrets=(),
    )


RIGS: dict[str, Rig] = {
    "http": plain_rig(),
    "simulator": simulator_rig(),
    "stripe refund": stripekit.rig("refund", test_stripe_suite.COMMON + test_stripe_suite.refunds()),
    "stripe payout": stripekit.rig("payout", test_stripe_suite.COMMON),
    "stripe transfer": stripekit.rig("transfer", test_stripe_suite.COMMON),
    "adyen refund": adyenkit.rig("refund", test_adyen_suite.COMMON + test_adyen_suite.REFUNDS),
    "adyen payout": adyenkit.rig("payout", test_adyen_suite.COMMON + test_adyen_suite.PAYOUTS),
    "paypal refund": paypalkit.rig("refund", test_paypal_suite.COMMON + test_paypal_suite.REFUNDS),
    "paypal payout": paypalkit.rig("payout", test_paypal_suite.COMMON + test_paypal_suite.PAYOUTS),
}


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing: the script answers at once."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("an adapter waits for something besides its transport")


def known(rig: Rig) -> list[Answer]:
    """Answers to begin with: the adapter's own, and those of others."""
    own = [rig.executed(rig.item(0)), *(case.answer for case in rig.cases)]
    others = [answer(reply.status, reply.body, **dict(reply.headers)) for reply in SINGLE_REPLIES]
    read = [answer(case["status"], case["body"].encode(), **_named(case["headers"])) for case in REPLIES]
    return [*own, *others, *read]


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("-", "_"): value for name, value in headers.items()}


def parsed(body: bytes) -> Any:
    """The body as JSON; None for anything else."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def leaves(value: Any) -> list[str]:
    """Every value in a JSON value that is no container, as text."""
    if isinstance(value, dict):
        return [text for part in value.values() for text in leaves(part)]
    if isinstance(value, list):
        return [text for part in value for text in leaves(part)]
    return [value if isinstance(value, str) else json.dumps(value)]


def believable(outcome: Outcome, answers: list[Answer], item: Item) -> None:
    """What an outcome needs in the answers that it comes from. ``answers``: the call's, and those of reads after it."""
    if not isinstance(outcome, Executed | Refused):
        return
    values = [leaves(parsed(given.body)) for given in answers if parsed(given.body) is not None]
    said = {text for texts in values for text in texts}
    if isinstance(outcome, Executed):
        assert any(200 <= given.status < 300 for given in answers), f"{outcome} from {answers[0].status}"
        assert outcome.reference.strip(), outcome
        assert outcome.reference in said, f"{outcome} from {answers[0].body!r}"
        if outcome.billed is not None and outcome.billed != item.money:
            assert answers[0].body, "another amount comes from somewhere"
    else:
        code = outcome.code.split(":")[0].lower()
        # refund_failed: the provider says that what it took has failed, or was taken back.
        words = {code.rpartition("_")[2], "canceled"}
        body = parsed(answers[0].body)
        if code == f"http_{answers[0].status}" and isinstance(body, dict) and "error" in body:
            return  # an error object of theirs, whose code is none that could be kept as it is
        assert any(code in text.lower() or text.lower() in words for text in said), (
            f"{outcome} from {answers[0].body!r}"
        )


def classify(name: str, first: Answer, *then: Answer) -> None:
    """One call with some answer, and what may be made of it."""
    item = RIGS[name].item(0)
    answers = [first, *then]
    _, reply = at_once(bench(name).call(item, *answers, *[answer(503)] * 8, key=KEY))
    believable(reply.outcome, answers, item)


@cache
def bench(name: str) -> Bench:
    """One adapter, which keeps nothing from one call to the next."""
    return Bench.of(RIGS[name])


@cache
def mutated(name: str) -> st.SearchStrategy[Answer]:
    """Mutations of the answers that an adapter begins with."""
    begin = known(RIGS[name])
    bodies = [parsed(given.body) for given in begin if parsed(given.body) is not None]
    body = st.one_of(json_bodies(bodies), torn_bytes([given.body for given in begin]))
    return st.builds(
        lambda status, data, headers: answer(status, data, **headers),
        st.sampled_from([*STATUSES, 200, 201, 400, 402, 422]),
        body,
        st.sampled_from(HEADERS),
    )


@pytest.mark.parametrize("name", RIGS)
def test_every_known_answer_through_every_adapter(name: str) -> None:
    """Each adapter's own answers and the table of others', as they are, and with every other status."""
    for found in known(RIGS[name]):
        classify(name, found)
        for status in (200, 202, 400, 402, 500):
            classify(name, Answer(status, found.headers, found.body))


@pytest.mark.parametrize("name", RIGS)
def test_every_part_of_a_success_replaced(name: str) -> None:
    """A value of any other kind in any place of the adapter's own success, or nothing there at all."""
    rig = RIGS[name]
    success = rig.executed(rig.item(0))
    body = parsed(success.body)
    for at in places(body):
        for odd in ODD:
            classify(name, Answer(success.status, success.headers, encode(put(body, at, odd))))
        if at:
            classify(name, Answer(success.status, success.headers, encode(without(body, at))))


def _fuzz(name: str, data: st.DataObject) -> None:
    answers = mutated(name)
    first, second = data.draw(answers), data.draw(answers)
    classify(name, first, second)
    if bench(name).provider.declaration.lookup is None:
        return
    looked = at_once(bench(name).look(RIGS[name].item(0), first, second, *[answer(503)] * 8, key=KEY))
    assert isinstance(looked, Found | LookupFailed)
    if isinstance(looked, Found):
        said = {text for given in (first, second) for text in leaves(parsed(given.body))}
        assert all(execution.reference in said for execution in looked.executions), (looked, first.body)


@pytest.mark.parametrize("name", RIGS)
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), phases=UNSHRUNK)
@given(data=st.data())
def test_mutated_answers(name: str, data: st.DataObject) -> None:
    """Bytes and structure mutated, calls and look-ups."""
    _fuzz(name, data)


@pytest.mark.lengthy
@pytest.mark.parametrize("name", RIGS)
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_mutated_answers_at_length(name: str, data: st.DataObject) -> None:
    """As above, others each time, many more."""
    _fuzz(name, data)


@pytest.mark.parametrize(
    ("outcome", "seen"),
    [
        (Executed("re_9"), answer(200, {"id": "re_1"})),
        (Executed("re_1"), answer(500, {"id": "re_1"})),
        (Executed("re_1"), answer(200, b"re_1")),
        (Refused("declined"), answer(400, {"error": "x"})),
    ],
)
def test_what_is_judged_here_can_fail(outcome: Outcome, seen: Answer) -> None:
    """An adapter that believed these would be caught."""
    with pytest.raises(AssertionError):
        believable(outcome, [seen], RIGS["http"].item(0))
