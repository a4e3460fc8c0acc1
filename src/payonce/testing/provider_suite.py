"""The conformance suite of adapters: every one passes it unchanged.

Use: subclass ``ProviderSuite`` in a test module and give it a fixture ``rig`` that returns a ``Rig``. The suite tries
what its documentation lists (``rig.cases``), what nobody lists, and every way the network can fail.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

import pytest

from payonce.core.keys import KeyMaker
from payonce.core.model import Item
from payonce.core.outcome import Executed, NotExecuted, Refused, Reply, Stop, Unresolved
from payonce.providers.protocol import Preflight
from payonce.providers.transport import Answer, Fault
from payonce.testing.provider_replies import SINGLE_REPLIES, SingleReply
from payonce.testing.provider_rig import Bench, Case, Rig, answer

# Answers that no provider documents: proxies, maintenance pages, half an answer, another service behind the address.
_STATUSES: Final = (200, 201, 202, 204, 206, 302, 304, 400, 402, 404, 405, 408, 409, 410, 413, 418, 422, 425, 451)
_SERVER: Final = (500, 502, 503, 504, 507, 520, 599)
_BODIES: Final = (
    b"",
    b"null",
    b"[]",
    b"{}",
    b"<html>Bad gateway</html>",
    b'{"id": ',
    b'{"ok": true}',
    b'{"status": "completed"}',
    b'{"error": "something"}',
    b'{"error": {"code": "a_code_of_next_year", "message": "no"}}',
    b'{"errorCode": "99_999", "message": "no"}',
    b'{"name": "SOMETHING_NEW", "details": [{"issue": "SOMETHING_NEW"}]}',
)
_SENT: Final = ("timeout", "reset", "closed", "cut_short", "bad_answer", "network_error")
_NOT_SENT: Final = ("connect_refused", "dns_failed", "tls_failed", "connect_timeout", "proxy_failed")


class ProviderSuite:
    """Every promise of ``providers.protocol``, on one adapter."""

    @pytest.fixture
    def rig(self) -> Rig:
        """The adapter under test."""
        raise NotImplementedError("an adapter's test class gives the suite its rig")

    def test_documented_answers_mean_what_the_documentation_says(self, rig: Rig) -> None:
        """Each listed answer becomes its outcome, with a code that people can look up."""
        for case in rig.cases:
            reply = _case(rig, case)
            assert type(reply.outcome) is case.outcome, f"{case.name}: {reply.outcome}"
            for name, wanted in case.facts.items():
                assert getattr(reply.outcome, name) == wanted, f"{case.name}: {reply.outcome}"
            if not isinstance(reply.outcome, Executed):
                assert reply.outcome.code, case.name

    def test_answers_nobody_lists_are_unresolved(self, rig: Rig) -> None:
        """Nothing unknown is ever a success or a refusal."""
        bench, item = Bench.of(rig), rig.item(0)
        key = _key(bench, item)
        for status in (*_STATUSES, *_SERVER):
            for body in _BODIES:
                _, reply = asyncio.run(bench.call(item, answer(status, body), key=key))
                assert type(reply.outcome) is Unresolved, f"{status} {body!r}: {reply.outcome}"
                assert reply.sent

    def test_load_and_credentials_are_known_by_their_status(self, rig: Rig) -> None:
        """429 did nothing and costs no attempt; 401 and 403 stop the batch: whatever their body is."""
        for body in _BODIES:
            limited = _call(rig, answer(429, body, Retry_After="7")).outcome
            assert isinstance(limited, NotExecuted) and limited.load, body
            assert limited.retry_after_us == 7_000_000
            for status in (401, 403):
                stopped = _call(rig, answer(status, body)).outcome
                assert isinstance(stopped, Stop) and not stopped.executed, f"{status} {body!r}: {stopped}"

    def test_what_may_have_been_sent_is_unresolved(self, rig: Rig) -> None:
        """A fault after the first byte proves nothing."""
        for code in _SENT:
            reply = _call(rig, Fault(code, "gone"))
            assert type(reply.outcome) is Unresolved and reply.sent, code

    def test_what_surely_was_not_sent_is_not_executed(self, rig: Rig) -> None:
        """Only a fault before the first byte is NotExecuted, and only load costs no attempt."""
        for code in _NOT_SENT:
            for load in (True, False):
                reply = _call(rig, Fault(code, "no", sent=False, load=load))
                assert isinstance(reply.outcome, NotExecuted) and not reply.sent, code
                assert reply.outcome.load is load

    def test_nothing_leaves_past_a_closed_gate(self, rig: Rig) -> None:
        """The gate is asked, and its no is NotExecuted('not_sent')."""
        bench, item = Bench.of(rig), rig.item(0)
        _, reply = asyncio.run(bench.call(item, rig.executed(item), key=_key(bench, item), gate=lambda: False))
        assert isinstance(reply.outcome, NotExecuted) and reply.outcome.code == "not_sent"
        assert not reply.sent
        assert not bench.transport.sent

    def test_a_cut_answer_is_unresolved(self, rig: Rig) -> None:
        """An answer that was not read to its end confirms nothing, even if its beginning does."""
        item = rig.item(0)
        assert type(_call(rig, replace_truncated(rig, item)).outcome) is Unresolved

    def test_requests_are_pure_and_go_out_as_they_are(self, rig: Rig) -> None:
        """The same item and key give the same bytes in every process; those bytes are sent, first and again."""
        for step in range(len(Bench.of(rig).provider.declaration.steps)):
            first, second, item = Bench.of(rig), Bench.of(rig), rig.item(step)
            key = _key(first, item)
            request, _ = asyncio.run(first.call(item, rig.executed(item), key=key))
            assert request == second.provider.prepare(item, key=key, step=step)
            sent = first.transport.sent[0]
            assert (sent.method, sent.path, sent.body) == (request.method, request.path, request.body)
            assert set(request.headers) <= set(sent.headers)

    def test_the_key_travels_and_fits(self, rig: Rig) -> None:
        """A declared key has the declared form and is in the request; another generation is another key."""
        bench, item = Bench.of(rig), rig.item(0)
        declared = bench.provider.declaration.key
        if declared is None:
            return
        key, other = _key(bench, item), _key(bench, replace(item, generation=1))
        assert key is not None and declared.format.fits(key) and key != other
        request = bench.provider.prepare(item, key=key, step=0)
        assert key in request.body.decode() or key in dict(request.headers).values()

    def test_no_credential_is_kept_or_shown(self, rig: Rig) -> None:
        """Not in a request, a reply, a digest or a repr, even where the provider echoes it."""
        bench, item = Bench.of(rig), rig.item(0)
        for secret in rig.secrets:
            echo = answer(400, {"error": {"message": f"no such key {secret}"}, "message": f"no such key {secret}"})
            request, reply = asyncio.run(bench.call(item, echo, key=_key(bench, item)))
            shown = repr((request, reply, bench.provider, bench.transport.settings, bench.provider.declaration))
            assert secret not in shown

    def test_single_replies(self, rig: Rig) -> None:
        """The replies of real incidents are never taken for more than they say."""
        for single in SINGLE_REPLIES:
            reply = _call(rig, answer(single.status, single.body, **dict(single.headers)))
            assert _allowed(single, reply, rig.item(0)), f"{single.id} ({single.why}): {reply.outcome}"

    def test_a_read_of_a_target_knows_when_it_knows_nothing(self, rig: Rig) -> None:
        """It is made if and only if it is declared, only reads, and an answer nobody lists tells neither good nor bad."""
        answers: list[Answer | Fault] = [Fault(code, "gone") for code in _SENT]
        answers += [answer(status, body) for status in (200, 302, 400, 418, *_SERVER) for body in _BODIES]
        for told in answers:
            found, methods = _read(rig, told)
            if not Bench.of(rig).provider.declaration.preflight:
                assert found is None and not methods
                return
            assert methods <= {"GET"}
            assert found is not None and not found.ok and not found.stop, told
            assert found.unread is not None and not found.unread.stop, told
        limited, _ = _read(rig, answer(429, b"", Retry_After="7"))
        assert limited is not None and limited.unread is not None and limited.unread.load
        assert limited.unread.retry_after_us == 7_000_000
        for status in (401, 403):
            found, _ = _read(rig, answer(status, b"{}"))
            assert found is not None and not found.ok
            assert found.stop or (found.unread is not None and found.unread.stop), status

    def test_the_declaration_can_be_relied_on(self, rig: Rig) -> None:
        """It names its sources, its steps are distinct, and its look-up exists if and only if it is declared."""
        declared = Bench.of(rig).provider.declaration
        assert declared.sources or declared.kind in ("http", "python", "simulator")
        assert len(set(declared.steps)) == len(declared.steps)
        assert declared.timeout_us > 0 and declared.max_execution_us > 0
        assert len(Bench.of(rig).provider.provider_digest) == 64


def _key(bench: Bench, item: Item) -> str | None:
    declared = bench.provider.declaration
    if declared.key is None:
        return None
    maker = KeyMaker(declared.key.format, namespace="payonce", batch="b", operation=declared.operation)
    return maker.key(item.id, step=declared.steps[item.step], generation=item.generation)


def _read(rig: Rig, told: Answer | Fault) -> tuple[Preflight | None, set[str]]:
    """What a read of the target gives, and the methods of what was sent for it."""
    bench = Bench.of(rig)
    bench.transport.answers[:] = [told]
    found = asyncio.run(bench.provider.preflight(rig.item(0), timeout_us=5_000_000))
    return found, {request.method for request in bench.transport.sent}


def _call(rig: Rig, result: object, *then: object, step: int = 0) -> Reply:
    bench, item = Bench.of(rig), rig.item(step)
    answers = [result, *then]
    _, reply = asyncio.run(bench.call(item, *answers, key=_key(bench, item)))  # type: ignore[arg-type]
    return reply


def _case(rig: Rig, case: Case) -> Reply:
    return _call(rig, case.answer, *case.then, step=case.step)


def replace_truncated(rig: Rig, item: Item) -> object:
    """The adapter's own success, cut off."""
    whole = rig.executed(item)
    whole.truncated = True
    return whole


def _allowed(single: SingleReply, reply: Reply, item: Item) -> bool:
    outcome = reply.outcome
    if isinstance(outcome, Executed):
        # Only where the answer is about the very call, over another amount, which stops the batch.
        return single.executed_if_mismatch and outcome.billed is not None and outcome.billed != item.money
    if isinstance(outcome, Refused):
        return single.refused
    return isinstance(outcome, single.outcomes)
