"""The usual cases: taken where they are meant to be, and with everything that hangs on them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from payonce.core.commands import BatchCommand, Change, Control
from payonce.core.model import SECOND_US
from payonce.core.states import BatchState, ItemEvent, ItemState, Settlement
from payonce.ledger import rules
from payonce.ledger.connect import connect
from payonce.ledger.sqlite_bodies import shortened
from payonce.ledger.store_reads import StoreLedger
from tests.unit.ledger.ledgers import BATCH, OPS, begin, commit, intent

ANSWER = {"start": "2026-11-30T08:00:00.000000Z", "end": "2026-11-30T08:00:01.000000Z", "status": 200, "response": "d1"}


def usual(n: int, **more: Any) -> Change:
    """An execution with the evidence of an answer."""
    return replace(commit(n), data={**ANSWER, **more})


@pytest.fixture
def ledger(url: str) -> Any:
    """A new ledger."""
    made = connect(url, create=True)
    yield made
    made.close()


def test_a_run_of_first_calls_and_executions_is_usual(ledger: StoreLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of it needs the rules for the unusual: what is fast stays fast."""
    worker = begin(ledger, 6)

    def unusual(*_: object) -> None:
        raise AssertionError("the rules were asked")

    monkeypatch.setattr(rules, "apply", unusual)
    ledger.write(worker, [intent(n) for n in range(1, 7)])
    ledger.write(worker, [usual(1), usual(2, request_id="req_1"), replace(usual(3), settlement=Settlement.PENDING)])
    ledger.write(worker, [usual(4, status=201), replace(usual(5), reference='re "5" \\ é'), usual(6)])
    assert ledger.status(BATCH).count(ItemState.COMMITTED) == 6
    assert ledger.check() == ()


def test_an_event_of_a_known_form_is_stored_as_any_other(ledger: StoreLedger) -> None:
    """The short text that it is filled into is the short text of its canonical bytes."""
    worker = begin(ledger, 2)
    ledger.write(worker, [intent(1), intent(2), usual(1), replace(usual(2, request_id="%s%d"), reference="100 %")])
    bodies = [event.body for event in ledger.events(BATCH)][-4:]
    assert [orjson.dumps(orjson.loads(body), option=orjson.OPT_SORT_KEYS) for body in bodies] == bodies
    stored = ledger._tables._db.execute("SELECT body FROM events ORDER BY seq DESC LIMIT 4").fetchall()  # type: ignore[attr-defined]
    assert [body for (body,) in reversed(stored)] == [text for body in bodies for text in shortened([body])]


def test_an_execution_ends_a_row_of_refusals(ledger: StoreLedger) -> None:
    """The limit is on refusals in a row; one that was executed in between starts the count again."""
    worker = begin(ledger, 6)
    limits = {"stop_after_consecutive": 2}
    ledger.control(BATCH, Control(BatchCommand.CONFIGURE, limits=limits, reason="batch file"), actor=OPS)
    ledger.write(worker, [intent(n) for n in range(1, 7)])
    refused = [Change(n, ItemEvent.REFUSE, code="declined", message="no", spent=1) for n in range(1, 7)]
    ledger.write(worker, [refused[0], usual(2), refused[2], usual(4), refused[4]])
    assert ledger.status(BATCH).batch.state is BatchState.RUNNING
    ledger.write(worker, [refused[5]])
    assert ledger.status(BATCH).batch.state is BatchState.STOPPED


def test_an_intent_of_a_clock_that_was_set_forward_is_never_after_its_call(ledger: StoreLedger) -> None:
    """Its time is the latest at which the call may leave, so that its key never looks younger than it is."""
    worker = begin(ledger, 1)
    late = intent(1).send_by_us - 60 * SECOND_US
    ledger.write(worker, [replace(intent(1), send_by_us=late)])
    (held,) = ledger.open_intents(BATCH, [1])
    assert (held.first_sent_us, held.sent_us) == (late, late)
