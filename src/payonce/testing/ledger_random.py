"""Random histories of a ledger: the same commands on two stores must give the same answers, items, tallies and events.

``histories`` is a hypothesis strategy, ``play`` runs one history on a world and returns everything that could be seen.
The commands are as a careless program would give them: most fit, many come too late, twice, or from the wrong worker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from payonce.core.commands import BatchCommand, Change, Command, Control, StopBatch
from payonce.core.errors import LeaseLost, UsageError
from payonce.core.model import SECOND_US, Finding, Item, NewItem, Worker
from payonce.core.money import Money
from payonce.core.states import ItemEvent, ItemState, Settlement
from payonce.testing.ledger_world import BATCH, LEASE_US, OPERATOR, World, fitting, intent, new_item

ITEMS = 6
BUDGET = {"USD": 4500}
_EVENTS = [event for event in ItemEvent if event not in (ItemEvent.INTENT, ItemEvent.RESEND)]
# What happens most in a run is drawn most.
_USUAL = [ItemEvent.COMMIT] * 4 + [ItemEvent.NOT_EXECUTED] * 2 + [ItemEvent.REFUSE, ItemEvent.UNRESOLVED] * 2

Step = tuple[str, int, int, Any]

_changes = st.tuples(
    st.sampled_from(_EVENTS + _USUAL),
    st.fixed_dictionaries(
        {},
        optional={
            "spent": st.integers(0, 2),
            "code": st.sampled_from(["timeout", "declined"]),
            "message": st.just("ü 'quoted'"),
            "billed": st.sampled_from([Money("9.00", "USD"), Money("10.00", "EUR")]),
            "settlement": st.sampled_from(list(Settlement)),
            "carry": st.just({"a": [1]}),
            "kept": st.just({"tokens": 3}),
            "output": st.just(b'{"x":1}'),
            "seen": st.booleans(),
            "burnt": st.booleans(),
            "final": st.booleans(),
            "in_progress": st.booleans(),
            "already_done": st.booleans(),
            "retry_at_us": st.integers(0, 9),
            "not_before_us": st.integers(0, 9),
            "lookups": st.integers(0, 1),
            "lookup_failures": st.integers(0, 1),
            "rate_limited": st.integers(0, 1),
            "renew": st.booleans(),
            "finding": st.booleans(),
            "stop": st.booleans(),
        },
    ),
)
# Answers as nearly every call gives them, and such as differ in one thing.
_evidence = st.fixed_dictionaries(
    {
        "start": st.just("2026-11-30T08:00:00.000000Z"),
        "end": st.sampled_from(["2026-11-30T08:00:01.000000Z", "%s é", 5]),
    },
    optional={
        "status": st.sampled_from([200, 200, 200, 201, -1, 2**60, 200.5, "200", True]),
        "response": st.just("5d41402abc4b2a76b9719d911017c592"),
        "request_id": st.sampled_from(["req_1", 'a "quoted" \\ one', "\t%d", "\x00", "\ud800"]),
        "sent": st.booleans(),
    },
)
_executions = st.fixed_dictionaries(
    {"data": _evidence | st.just({"start": "a", "end": "b", "status": 200, "response": "c", "request_id": "d"})},
    optional={
        "reference": st.sampled_from(["re_2", 're "3"', "ré\x00e", "%", ""]),
        "settlement": st.sampled_from(list(Settlement)),
        "billed": st.sampled_from([Money("5.00", "USD"), Money("10.00", "USD")]),
    },
).map(lambda given: (ItemEvent.COMMIT, given))
_numbers, _workers = st.integers(1, ITEMS), st.integers(0, 1)
_steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("intend"), _workers, _numbers, st.integers(0, 9)),
    st.tuples(st.just("intend"), _workers, _numbers, st.integers(0, 9)),
    st.tuples(st.just("change"), _workers, _numbers, _changes),
    st.tuples(st.just("change"), _workers, _numbers, _changes),
    st.tuples(st.just("change"), _workers, _numbers, _executions),
    st.tuples(st.just("write"), _workers, st.just(0), st.lists(st.tuples(_numbers, _changes), max_size=5)),
    st.tuples(st.just("write"), _workers, st.just(0), st.lists(st.tuples(_numbers, _executions), max_size=5)),
    st.tuples(st.just("operate"), st.just(0), _numbers, _changes),
    st.tuples(st.just("control"), _workers, st.integers(0, 1), st.sampled_from(list(BatchCommand))),
    st.tuples(st.just("time"), st.just(0), st.just(0), st.sampled_from([-5.0, 0.01, 1.0, 31.0])),
    st.tuples(st.sampled_from(["planned", "take_over", "slots"]), _workers, st.integers(1, 4), st.just(None)),
    st.tuples(st.sampled_from(["join", "leave", "kill", "renew", "reopen"]), _workers, st.just(0), st.just(None)),
)
histories = st.lists(_steps, max_size=40)
# What fills a run: first calls and their executions, and now and then something else.
_intends = st.tuples(st.just("intend"), _workers, _numbers, st.integers(0, 4))
_clocks = st.tuples(st.just("time"), st.just(0), st.just(0), st.sampled_from([-11.0, 0.01]))
_executed = st.tuples(st.just("change"), _workers, _numbers, _executions)
runs: st.SearchStrategy[list[Step]] = st.lists(_intends | _executed | _executed | _clocks | _steps, max_size=20)


def play(world: World, history: list[Step], *, targets: bool) -> list[Any]:
    """Runs a history; returns every answer and, at the end, everything the ledger shows. Checks what must hold always:
    the self-check finds nothing, the budget holds, no target is held twice."""
    items = [new_item(n, minor=500 * n, target=f"t{n % 4}" if targets else None) for n in range(1, ITEMS)]
    items.append(NewItem("free", None))
    workers = [world.start(items, targets=targets, budget=BUDGET, stop_after_refusals=4, rate_per_ks=9999)]
    workers.append(world.join())
    seen: list[Any] = []
    for step in history:
        try:
            seen.append(_STEPS[step[0]](world, workers, step))
        except (UsageError, LeaseLost) as refusal:
            seen.append((type(refusal).__name__, refusal.code))
    world.assert_sound()
    status, page = world.ledger.status(BATCH), world.ledger.items(BATCH)
    reserved = status.minor("USD", ItemState.PENDING, ItemState.UNKNOWN)
    billed_beyond = sum(_beyond(item) for item in page.items)
    # A planned item that becomes unknown may have been executed already, whatever the budget says.
    opened = world.ledger.open_intents(BATCH, range(1, ITEMS + 1))
    billed_beyond += sum(one.item.money.minor for one in opened if not one.intent and one.item.money is not None)
    assert not reserved or status.minor("USD", ItemState.COMMITTED) + reserved <= BUDGET["USD"] + billed_beyond
    # What a person says of an item that had no call out waits for nobody's target, and takes none that is held.
    held = [one.item.target for one in opened if one.intent]
    assert len(held) == len(set(held))
    rest = (world.ledger.events(BATCH), world.ledger.findings(BATCH), world.ledger.outputs(BATCH))
    return [*seen, status, page, opened, *rest]


def _beyond(item: Item) -> int:
    """By how much a provider billed more than was asked: no budget can stop that, only the next intent."""
    if item.billed is None or item.billed.currency != "USD":
        return 0
    return max(0, item.billed.minor - (item.money.minor if item.money else 0))


def _command(world: World, n: int, drawn: tuple[ItemEvent, dict[str, Any]]) -> Command:
    event, given = drawn
    more = {**fitting(event), **given}
    if more.pop("renew", False) and event in (ItemEvent.NOT_EXECUTED, ItemEvent.RETRY):
        more["generation"] = world.item(n).generation + 1
    if more.pop("finding", False):
        more["findings"] = (Finding("amount_mismatch", "x", {"n": n}),)
    if more.pop("stop", False):
        more["stop"] = StopBatch("told", "to stop", hold=n % 2 == 0)
    return Change(n, event, **more)


def _intend(world: World, workers: list[Worker], step: Step) -> Any:
    _, which, n, kind = step
    if kind == 9:
        return world.write(workers[which], intent(n, ItemEvent.INTENT, generation=1, now_us=world.now_us))
    more = {"reserve": Money("7.00", "USD")} if n == ITEMS and kind > 4 else {}
    return world.intend(workers[which], n, **more, **_key(n))


def _key(n: int) -> dict[str, Any]:
    """One item's calls have no keys."""
    return {"key": None} if n == ITEMS - 2 else {}


def _write(world: World, workers: list[Worker], step: Step) -> Any:
    ns = list(dict.fromkeys(n for n, _ in step[3]))
    changes = [_command(world, n, drawn) for n, drawn in step[3] if not drawn[1].get("renew")]
    return world.write(workers[step[1]], *[world.intent(n, **_key(n)) for n in ns[:2]], *changes)


def _control(world: World, workers: list[Worker], step: Step) -> Any:
    _, which, by_worker, command = step
    limits = {"budget": BUDGET, "stop_after_consecutive": 3} if command is BatchCommand.CONFIGURE else None
    pace = 5000 if command is BatchCommand.SLOW else None
    control = Control(command, reason="r", code="c", limits=limits, pace_per_ks=pace, slow_until_us=world.now_us + 3)
    return world.ledger.control(BATCH, control, actor=OPERATOR, worker=workers[which] if by_worker else None)


def _process(world: World, workers: list[Worker], step: Step) -> Any:
    verb, which, *_ = step
    match verb:
        case "join":
            workers[which] = world.join()
            return workers[which]
        case "leave":
            return world.ledger.leave(workers[which])
        case "kill":
            world.gone.add(101 + which)
            return None
        case "renew":
            return world.ledger.renew(workers[which], lease_us=LEASE_US)
        case _:
            return world.reopen()


def _pass_time(world: World, workers: list[Worker], step: Step) -> None:
    world.now_us += round(step[3] * SECOND_US)


_STEPS: dict[str, Callable[[World, list[Worker], Step], Any]] = {
    "intend": _intend,
    "change": lambda world, workers, step: world.write(workers[step[1]], _command(world, step[2], step[3])),
    "write": _write,
    "operate": lambda world, workers, step: world.operate(step[2], _command(world, step[2], step[3])),
    "control": _control,
    "time": _pass_time,
    "planned": lambda world, workers, step: world.ledger.planned(workers[step[1]], limit=step[2]),
    "take_over": lambda world, workers, step: world.ledger.take_over(workers[step[1]], limit=step[2]),
    "slots": lambda world, workers, step: world.ledger.slots(workers[step[1]], count=step[2]),
    "join": _process,
    "leave": _process,
    "kill": _process,
    "renew": _process,
    "reopen": _process,
}
