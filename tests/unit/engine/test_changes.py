"""Verdicts written down: each becomes the change of its kind, with its evidence, and nothing else moves."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payonce.core.commands import Change, StopBatch
from payonce.core.decide import Commit, Doubt, GiveUp, LeaveOut, NextStep, PlanAgain, Refuse, Verdict
from payonce.core.events import canonical, plain
from payonce.core.model import Item
from payonce.core.money import Money
from payonce.core.outcome import Executed, Execution, Found, LookupFailed, NotExecuted, Reply, Unresolved
from payonce.core.states import ItemEvent, ItemState, Settlement, transition
from payonce.engine.changes import (
    MESSAGE_LIMIT,
    as_json,
    change_for,
    cut,
    evidence_of_found,
    evidence_of_reply,
    failed_lookup,
)

ASKED, LESS = Money("10.00", "USD"), Money("9.00", "USD")
ITEM = Item(3, "r3", "ch_3", ASKED, {}, ItemState.PENDING, generation=2, step=1, carry={"step_0": "in_1"})
NOW_US = 1_000_000
EXECUTED = Executed("re_1", ASKED, Settlement.PENDING, kept={"fee": 0.3}, output={"text": "é"}, carry={"line": "li_1"})
VERDICTS: list[tuple[Verdict, ItemEvent]] = [
    (Commit(EXECUTED), ItemEvent.COMMIT),
    (NextStep(EXECUTED), ItemEvent.STEP_DONE),
    (Refuse("disputed", "no"), ItemEvent.REFUSE),
    (PlanAgain("busy", "later"), ItemEvent.NOT_EXECUTED),
    (Doubt("timeout", "?"), ItemEvent.UNRESOLVED),
    (GiveUp("key_expired", "?"), ItemEvent.UNDECIDED),
    (LeaveOut("already_done_elsewhere", "re_9", ("re_9",)), ItemEvent.SKIP),
]


def change(verdict: Verdict, **more: Any) -> Change:
    """The change of a verdict on item r3."""
    return change_for(verdict, item=ITEM, data={"status": 200}, now_us=NOW_US, **more)


@pytest.mark.parametrize(("verdict", "event"), VERDICTS)
def test_each_verdict_is_one_event_of_a_pending_item(verdict: Verdict, event: ItemEvent) -> None:
    """Of the item's own number, with the evidence, by an edge that the transition table has."""
    made = change(verdict, lookups=1, rate_limited=1)
    assert (made.n, made.event, made.data["status"]) == (3, event, 200)
    assert (made.lookups, made.rate_limited) == (1, 1)
    assert transition(ItemState.PENDING, made.event) is not None


def test_a_commit_holds_everything_that_was_confirmed() -> None:
    """Reference, billed amount, settlement, kept fields without floats, and what the call returned."""
    made = change(Commit(EXECUTED))
    assert (made.reference, made.billed, made.settlement) == ("re_1", ASKED, Settlement.PENDING)
    assert made.kept == {"fee": "0.3"} and made.output is not None and orjson.loads(made.output) == {"text": "é"}
    assert made.findings == () and made.stop is None and made.spent == 0


def test_a_commit_without_a_told_amount_takes_the_asked_one() -> None:
    """The provider confirms without repeating the amount."""
    made = change(Commit(Executed("re_1")))
    assert (made.billed, made.output, made.kept) == (ASKED, None, None)


@pytest.mark.parametrize("kind", ["amount_mismatch", "currency_mismatch"])
def test_another_amount_opens_a_finding_and_holds_the_batch(kind: str) -> None:
    """Committed with what was billed, or unknown with what was executed: both amounts are told, and only a person goes
    on."""
    executed = Executed("re_1", LESS)
    for verdict in (Commit(executed, mismatch=kind), GiveUp("wrong_amount", "?", mismatch=kind, executed=executed)):
        made = change(verdict, stop=StopBatch("other", "other"))
        (finding,) = made.findings
        assert (finding.kind, finding.item) == (kind, "r3")
        assert finding.data == {"reference": "re_1", "asked": "10.00 USD", "billed": "9.00 USD"}
        assert made.stop is not None and (made.stop.code, made.stop.hold) == (kind, True)
    assert change(Commit(executed, mismatch=kind)).billed == LESS


def test_a_step_done_carries_what_the_next_one_needs() -> None:
    """The references of all steps so far, and the values the answer was to carry on."""
    made = change(NextStep(EXECUTED))
    assert made.carry == {"step_0": "in_1", "line": "li_1", "step_1": "re_1"}
    assert made.data == {"status": 200, "reference": "re_1"} and made.reference is None


@pytest.mark.parametrize(
    ("verdict", "spent"),
    [
        (PlanAgain("busy", ""), 1),
        (PlanAgain("rate_limited", "", load=True), 0),
        (PlanAgain("proven_absent", "", spends=False), 0),
        (Doubt("timeout", ""), 1),
        (Doubt("in_use", "", spends=False), 0),
        (Refuse("no", ""), 1),
        (Commit(EXECUTED), 0),
        (GiveUp("key_expired", ""), 0),
    ],
)
def test_attempts_are_counted_as_the_verdict_says(verdict: Verdict, spent: int) -> None:
    """Load, waiting and what was counted before use up nothing."""
    assert change(verdict).spent == spent


def test_a_new_key_only_where_the_verdict_has_the_proof() -> None:
    """The generation is the item's plus one, or stays."""
    assert change(PlanAgain("proven_absent", "", new_generation=True)).generation == 3
    assert change(PlanAgain("busy", "")).generation is None


def test_waits() -> None:
    """A planned item is not sent, a pending one not looked at, before the wait is over."""
    assert change(PlanAgain("busy", ""), wait_us=7).not_before_us == NOW_US + 7
    assert change(Doubt("timeout", ""), wait_us=7).retry_at_us == NOW_US + 7


def test_what_was_learned_in_doubt_is_kept() -> None:
    """Burnt, final, in progress, already done, and that an answer was seen."""
    made = change(Doubt("x", "", burnt=True, final=True, in_progress=True, already_done=True))
    assert made.burnt and made.final and made.in_progress and made.already_done and made.seen
    assert not change(Doubt("not_sent", ""), seen=False).seen


def test_someone_else_s_executions_are_a_finding() -> None:
    """Left out, with the references that show why."""
    (finding,) = change(LeaveOut("already_done_elsewhere", "", ("re_8", "re_9"))).findings
    assert (finding.kind, finding.data) == ("already_done", {"references": ["re_8", "re_9"]})


def test_a_stop_is_written_with_the_answer_that_asked_for_it() -> None:
    """In the same transaction: no later intent lands."""
    stop = StopBatch("bad_credentials", "no")
    for verdict, _ in VERDICTS:
        assert change(verdict, stop=stop).stop is stop


@given(text=st.text(st.characters(exclude_categories=()), max_size=2000))
def test_a_message_is_kept_short_and_can_always_be_written(text: str) -> None:
    """Whatever a provider says, half characters included, fits into an event."""
    made = change(Refuse("c", text))
    assert made.message is not None and canonical({"message": made.message})
    assert len(cut("x" * len(text))) <= MESSAGE_LIMIT


class Odd:
    """Something that is no JSON."""

    def __str__(self) -> str:
        return "odd"


SELF: list[Any] = []
SELF.append(SELF)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, "é", None]}, '{"a":[1,"é",null]}'),
        (Odd(), '"odd"'),
        ({1: 2}, '{"1":2}'),
        ({"n": 2**70}, f'{{"n":"{2**70}"}}'),
        ("\ud800", '"\\\\ud800"'),
        (SELF, '{"not_json":"list"}'),
        ([10**5000], '{"not_json":"list"}'),
    ],
)
def test_whatever_a_call_returns_its_commit_can_be_written(value: object, text: str) -> None:
    """It was executed: an output that is no JSON must not keep that from being recorded."""
    assert as_json(value).decode() == text
    assert change(Commit(Executed("re_1", output=value))).output == text.encode()


def test_evidence_of_an_answer() -> None:
    """Times, status, request id and the digest of the body; never the body itself."""
    reply = Reply(
        Unresolved("http_500"),
        status=500,
        response=b"secret",
        truncated=True,
        request_id="req_1",
        replayed=True,
        started_us=0,
        ended_us=1,
    )
    assert evidence_of_reply(reply) == {
        "start": "1970-01-01T00:00:00.000000Z",
        "end": "1970-01-01T00:00:00.000001Z",
        "status": 500,
        "response": "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b",
        "request_id": "req_1",
        "replayed": True,
        "truncated": True,
    }
    assert evidence_of_reply(Reply(NotExecuted("not_sent"), sent=False))["sent"] is False


def test_evidence_of_a_look_up() -> None:
    """How many were shown, the first twenty with amount and currency, and the digest of the answer."""
    shown = tuple(Execution(f"re_{n}", ASKED if n else None, "r3") for n in range(25))
    (found,) = evidence_of_found(Found(shown, response=b"")).values()
    assert (found["shown"], len(found["executions"])) == (25, 20)
    assert found["executions"][1] == {
        "reference": "re_1",
        "amount": "10.00",
        "currency": "USD",
        "own": "r3",
        "failed": False,
    }
    assert found["response"].startswith("e3b0c442")
    assert plain(found) == found


@pytest.mark.parametrize("load", [True, False])
def test_a_look_up_that_failed_proves_nothing(load: bool) -> None:
    """It counts against the bound unless it failed for load, and the item waits; nothing else changes."""
    made = failed_lookup(LookupFailed("http_503", "x" * 600, load=load), item=ITEM, now_us=NOW_US, wait_us=9)
    assert (made.event, made.lookups, made.lookup_failures, made.rate_limited) == (ItemEvent.LOOKUP, 1, not load, load)
    assert made.retry_at_us == NOW_US + 9 and made.stop is None and made.spent == 0
    assert made.message is not None and len(made.message) <= MESSAGE_LIMIT


def test_a_look_up_with_bad_credentials_stops_the_batch() -> None:
    """Every other look-up would meet the same."""
    made = failed_lookup(LookupFailed("unauthorised", "no", stop=True), item=ITEM, now_us=NOW_US, wait_us=0)
    assert made.stop == StopBatch("unauthorised", "no")
