"""A ledger with some of everything that can be in one, on any store: every kind of row, and items in every state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from payonce.core.commands import BatchCommand, Change, Control, Landed
from payonce.core.model import SECOND_US, Actor, BatchSpec, Finding, NewItem, Worker
from payonce.core.money import Money
from payonce.core.seal import Seal
from payonce.core.states import ItemEvent, Settlement
from payonce.ledger.store_reads import StoreLedger
from payonce.testing.ledger_world import HERE, OPERATOR, World

_E = ItemEvent
_HOUR_US = 3600 * SECOND_US
_USDC = Money("1.00", "USDC")


def fill(world: World) -> None:
    """Everything. The batches are ``refunds`` (stopped, with open items), ``calls`` (paid again), ``grown`` (sealed three
    times, fields erased) and ``many`` (finished)."""
    many(world)
    refunds(world)
    calls(world)
    grown(world)


def _seal(world: World, batch: str, new: Sequence[NewItem], **spec: Any) -> None:
    seal = Seal()
    for item in new:
        seal.add(item)
    config = {"key_carrier": "header Idempotency-Key", "provider": {"kind": "simulator"}}
    facts = {"operation": "refund", "provider": "simulator", "account": "acct_1", "mode": "test", "config": config}
    world.ledger.seal(
        BatchSpec(batch, **{**facts, "source": f"{batch}.csv", "source_digest": "ab" * 32, **spec}),
        new,
        seal=seal.hexdigest(),
        actor=OPERATOR,
    )


def _join(world: World, batch: str, pid: int) -> Worker:
    """A worker whose machine tells how its clock was set."""
    steady_us = world.now_us - 1_000_000 * SECOND_US
    actor = Actor("worker", HERE, pid, boot="b1", pid_start="7", steady_us=steady_us)
    worker = world.ledger.join(batch, actor=actor, lease_us=_HOUR_US)
    world.control(BatchCommand.START, batch=batch, worker=worker)
    return worker


def _do(landed: Landed) -> None:
    assert landed is Landed.LANDED, landed


def many(world: World) -> None:
    """So many events that hashes are kept inside the trail; finished."""
    _seal(world, "many", [NewItem(f"m-{n}", Money("1.00", "USD"), fields={"n": n}) for n in range(1, 141)])
    worker = _join(world, "many", 201)
    numbers = range(1, 141)
    world.write(worker, *[world.intent(n, batch="many") for n in numbers])
    world.write(worker, *[Change(n, _E.COMMIT, reference=f"re-m{n}") for n in numbers])
    world.control(BatchCommand.FINISH, batch="many", worker=worker)
    world.ledger.leave(worker)


def refunds(world: World) -> None:
    """Items in every state, open intents with all that can be known of one."""
    new = [
        NewItem(
            f"it-{n}", Money(f"{n}.00", "USD" if n % 5 else "EUR"), target=f"ch-{n}", fields={"email": f"a{n}@x.org"}
        )
        for n in range(1, 21)
    ]
    _seal(world, "refunds", new, targets=True)
    limits = {"budget": {"USD": 10**9, "EUR": 10**9}, "attempts": 5}
    world.control(BatchCommand.CONFIGURE, batch="refunds", limits=limits, reason="batch file")
    worker = _join(world, "refunds", 202)
    _first_calls(world, worker)
    _doubts(world, worker)
    _taken_over(world)
    world.control(BatchCommand.PAUSE, batch="refunds", reason="lunch")
    world.control(BatchCommand.RESUME, batch="refunds", reason="after lunch")
    world.pass_time(1)
    stop = {"reason": "a look is needed", "code": "asked", "hold": True}
    world.control(BatchCommand.STOP, batch="refunds", **stop)


def _first_calls(world: World, worker: Worker) -> None:
    """Executed, refused, skipped, put back, settled later; with payloads, outputs and findings."""
    for n in range(1, 8):
        world.pass_time(1)
        _do(world.intend(worker, n, payloads={"request": b'{"n":%d}' % n}))
    world.pass_time(1)
    data = {"start": "2027-01-15T08:00:00.000000Z", "end": "2027-01-15T08:00:01.000000Z", "status": 200}
    for n in (1, 2):
        kept = {"output": b'{"ok":true}', "kept": {"fee": "0.10"}, "payloads": {"response": b'{"id":"re"}'}}
        more = {"reference": f"re-{n}", "settlement": Settlement.PENDING, "data": data, **kept}
        _do(world.change(worker, n, _E.COMMIT, **more))
    _do(world.change(worker, 3, _E.COMMIT, reference="re-3", billed=Money("3.01", "USD"), lookups=1))
    _do(world.change(worker, 4, _E.REFUSE, code="closed", message="card closed", spent=1))
    finding = (Finding("doubt", "it-5", {"why": "no look-up", "amounts": ["5.00"]}),)
    _do(world.change(worker, 5, _E.UNDECIDED, code="no_rule", message="may have been", findings=finding))
    back = {"code": "rate_limited", "spent": 1, "rate_limited": 1, "not_before_us": world.now_us + 5}
    _do(world.change(worker, 6, _E.NOT_EXECUTED, **back))
    _do(world.change(worker, 7, _E.REFUSE, code="closed", spent=1))
    _do(world.change(worker, 8, _E.SKIP, code="guard", message="done before"))
    _do(world.change(worker, 1, _E.SETTLE, settlement=Settlement.SUCCEEDED))
    world.control(BatchCommand.SLOW, batch="refunds", worker=worker, slow_until_us=world.now_us, pace_per_ks=5000)
    world.pass_time(1)
    _do(world.operate(7, Change(7, _E.RETRY, code="again", message="card is open"), batch="refunds"))
    note = Control(BatchCommand.NOTE, findings=(Finding("missing_in_ledger", None, {"row": 3}),))
    world.ledger.control("refunds", note, actor=OPERATOR)


def _doubts(world: World, worker: Worker) -> None:
    """Calls that are out, with what was learned of each."""
    for n in (9, 10, 11, 12, 13):
        world.pass_time(1)
        _do(world.intend(worker, n))
    world.pass_time(1)
    learned = {"seen": True, "burnt": True, "final": True, "in_progress": True, "spent": 1, "retry_at_us": 77}
    _do(world.change(worker, 10, _E.UNRESOLVED, code="http_500", message="later", **learned))
    _do(world.change(worker, 10, _E.LOOKUP, lookups=1, lookup_failures=1, rate_limited=1, code="busy", retry_at_us=99))
    _do(world.change(worker, 11, _E.STEP_DONE, carry={"transfer": "tr_11"}))
    _do(world.change(worker, 12, _E.STEP_DONE, carry={"transfer": "tr_12"}, seen=True))
    world.pass_time(1)
    _do(world.intend(worker, 12))
    _do(world.change(worker, 13, _E.UNRESOLVED, code="timeout", seen=True, already_done=True))


def _taken_over(world: World) -> None:
    """The worker died, and the clock was set back before the next one came."""
    world.gone.add(202)
    world.pass_time(5)
    actor = Actor("worker", HERE, 203, boot="b1", steady_us=world.now_us - 999_000 * SECOND_US)
    second = world.ledger.join("refunds", actor=actor, lease_us=_HOUR_US)
    taken = world.ledger.take_over(second, limit=4)
    assert {held.item.n for held in taken} == {9, 10, 11, 12}
    world.control(BatchCommand.START, batch="refunds", worker=second)
    world.pass_time(1)
    _do(world.intend(second, 6))
    _do(world.change(second, 6, _E.NOT_EXECUTED, code="rate_limited", rate_limited=1))
    _do(world.intend(second, 14))
    _do(world.change(second, 14, _E.REFUSE, code="no", spent=1))


def calls(world: World) -> None:
    """Calls without a known price, paid again, and one of these that was refused then."""
    _seal(world, "calls", [NewItem(f"call-{n}", None) for n in range(1, 5)], operation="call")
    limits = {"on_unknown": "pay_again", "pay_again_limit": {"USDC": 9_000_000}, "budget": {"USDC": 90_000_000}}
    world.control(BatchCommand.CONFIGURE, batch="calls", limits=limits)
    worker = _join(world, "calls", 204)
    for n in (1, 2, 3):
        _do(world.intend(worker, n, reserve=_USDC))
        world.pass_time(1)
    for n in (1, 2):
        _do(world.change(worker, n, _E.PAY_AGAIN, code="timeout"))
    world.pass_time(1)
    _do(world.change(worker, 1, _E.REFUSE, code="bad", message="no"))  # it holds its money: unknown
    _do(world.change(worker, 3, _E.COMMIT, billed=Money("0.50", "USDC"), reference="x-3"))
    world.control(BatchCommand.INTERRUPT, batch="calls", worker=worker, reason="asked to end", code="sigterm")


def grown(world: World) -> None:
    """Sealed in three parts; one item executed, and what was read of a person erased."""
    spec = BatchSpec("grown", "payout", "simulator", config={"a": 1})
    for part, numbers in enumerate(([1], [2, 3], [4])):
        new = [NewItem(f"p-{n}", Money("7.00", "USD"), fields={"name": f"N {n}"}) for n in numbers]
        world.ledger.amend(spec, new, seal="cd" * 32 if part == 1 else None, actor=OPERATOR)
        world.pass_time(1)
    worker = _join(world, "grown", 205)
    _do(world.intend(worker, 2, payloads={"request": b'{"name":"N 2"}'}))
    kept = {"output": b'{"name":"N 2"}', "payloads": {"response": b'{"name":"N 2"}'}}
    _do(world.change(worker, 2, _E.COMMIT, reference="po-2", **kept))
    store = cast(StoreLedger, world.ledger)
    store.erase("grown", ["p-2"], fields=None, actor=OPERATOR, reason="asked")
    world.control(BatchCommand.CANCEL, batch="grown", reason="wrong file")
