"""Any ledger, any set of injected faults: the classes come back exactly, and every currency balances."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from payonce.core.money import Money
from payonce.core.states import ItemState, Settlement
from payonce.reconcile.match import reconcile
from payonce.reconcile.model import Coverage, Entry, Kind, LedgerLine, Proof

CURRENCIES = ("USD", "EUR", "JPY", "KWD")
COVERED = Coverage(0, 10_000_000, 0)
FAULTS = ("none", "amount", "currency", "gone", "uncovered", "twice", "same_reference", "returned", "unknown_executed",
          "unknown_absent", "planned", "refused_executed")  # fmt: skip


def line(n: int, minor: int, currency: str) -> LedgerLine:
    money = Money.of_minor(minor, currency)
    return LedgerLine(n, f"item-{n}", f"ch_{n}", ItemState.COMMITTED, reference=f"re_{n}", keys=(f"key-{n}",),
                      asked=money, billed=money, earliest_us=n, latest_us=n + 1)  # fmt: skip


def entry(of: LedgerLine, *, by: str) -> Entry:
    """The statement's honest entry of an item, findable by its reference, its key or the item's own id."""
    assert of.money is not None
    base = Entry(of.n, of.money.currency, legs=(of.money.minor,), rows=(str(of.n),), at_us=of.n)
    if by == "reference":
        return replace(base, reference=of.reference)
    if by == "key":
        return replace(base, keys=of.keys, reference=f"other-{of.n}")
    return replace(base, owns=(of.item,))


@st.composite
def worlds(draw: st.DrawFn):
    """A ledger, the statement after some faults, and the classes that the faults are."""
    # All entries of one statement are findable the same way: a real report has one layout.
    by = draw(st.sampled_from(["reference", "key", "own"]))
    lines: list[LedgerLine] = []
    entries: list[Entry] = []
    expected: Counter[Kind] = Counter()
    proofs: Counter[Proof] = Counter()
    for n in range(1, draw(st.integers(1, 25)) + 1):
        made = line(n, draw(st.integers(1, 10**6)), draw(st.sampled_from(CURRENCIES)))
        fault = draw(st.sampled_from(FAULTS))
        made, shown, kinds, proof = _inject(draw, made, fault, by)
        lines.append(made)
        entries += shown
        expected.update(kinds)
        proofs.update(proof)
    for n in range(draw(st.integers(0, 4))):
        entries.append(Entry(1000 + n, "USD", reference=f"stranger-{n}", legs=(draw(st.integers(1, 999)),)))
        expected[Kind.MISSING_IN_LEDGER] += 1
    return lines, draw(st.permutations(entries)), expected, proofs


def _inject(draw: st.DrawFn, made: LedgerLine, fault: str, by: str):
    shown = entry(made, by=by)
    unknown = replace(made, state=ItemState.UNKNOWN, reference=None, billed=None)
    minor = shown.legs[0]
    match fault:
        case "amount":
            return made, [replace(shown, legs=(minor + draw(st.integers(1, 99)),))], [Kind.AMOUNT_MISMATCH], []
        case "currency":
            other = draw(st.sampled_from([c for c in CURRENCIES if c != shown.currency]))
            return made, [replace(shown, currency=other)], [Kind.CURRENCY_MISMATCH], []
        case "gone":
            return made, [], [Kind.MISSING_AT_PROVIDER], []
        case "uncovered":
            return replace(made, latest_us=COVERED.to_us + 1), [], [Kind.NOT_COVERED], []
        case "twice":
            again = replace(shown, owns=(made.item,), reference=f"again-{made.n}", place=500 + made.n)
            return made, [replace(shown, owns=(made.item,)), again], [Kind.MATCHED, Kind.DUPLICATE], []
        case "same_reference":
            extra = draw(st.integers(1, 3))
            return made, [replace(shown, legs=(minor,) * (1 + extra))], [Kind.MATCHED] + [Kind.DUPLICATE] * extra, []
        case "returned":
            return made, [replace(shown, returned=minor)], [Kind.STATUS_MISMATCH], [Proof.RETURNED]
        case "unknown_executed":
            found = entry(made, by="own" if by == "reference" else by)
            return unknown, [found], [Kind.STATUS_MISMATCH], [Proof.EXECUTED]
        case "unknown_absent":
            return unknown, [], [], [Proof.NOT_EXECUTED]
        case "planned":
            never = replace(unknown, state=ItemState.PLANNED, earliest_us=None, latest_us=None, keys=())
            return never, [], [], []
        case "refused_executed":
            return replace(made, state=ItemState.REFUSED, billed=None), [shown], [Kind.STATUS_MISMATCH], []
        case _:
            return made, [shown], [Kind.MATCHED], []


@given(worlds())
@settings(max_examples=120, deadline=None)
def test_the_classes_come_back_exactly_and_every_currency_balances(world) -> None:
    """Each fault is one finding of its class; ledger + discrepancies = statement, to the minor unit."""
    lines, entries, expected, proofs = world
    found = reconcile(lines, entries, COVERED)
    assert {kind: count for kind, count in found.counts.items() if count} == dict(expected)
    assert Counter(proven.proof for proven in found.proven) == proofs
    _balances(lines, entries, found)


def _balances(lines, entries, found) -> None:
    """Both totals are summed here from the raw sides, independently of the verdicts."""
    uncovered = {d.item for d in found.uncovered}
    ledger: Counter[str] = Counter()
    for of in lines:
        if of.committed and of.item not in uncovered and not of.came_back:
            ledger[of.billed.currency] += of.billed.minor
    statement: Counter[str] = Counter()
    for shown in entries:
        statement[shown.currency] += shown.net
    for currency in {*ledger, *statement}:
        deltas = sum(d.statement for d in found.discrepancies if (d.statement_currency or d.currency) == currency)
        deltas -= sum(d.ledger for d in found.discrepancies if d.currency == currency)
        assert ledger[currency] + deltas == statement[currency]
        assert found.balance[currency].ledger == ledger[currency]
        assert found.balance[currency].statement == statement[currency]


@st.composite
def wild(draw: st.DrawFn):
    """Lines and entries whose ids collide at random, in every state: nothing about them is nice."""
    names = st.sampled_from(["a", "A", "b", "re_1", "re_2", "k1", "k2"])
    money = st.builds(Money.of_minor, st.integers(1, 50), st.sampled_from(["USD", "EUR"]))
    lines = [
        LedgerLine(n, name, draw(names), draw(st.sampled_from(list(ItemState))), draw(st.sampled_from(list(Settlement))),
                   draw(st.none() | names), tuple(draw(st.lists(names, max_size=2))), draw(st.none() | money),
                   draw(st.none() | money), draw(st.none() | st.integers(0, 9)), draw(st.none() | st.integers(0, 9)))
        for n, name in enumerate(draw(st.lists(names, unique=True, max_size=7)), 1)
    ]  # fmt: skip
    small = st.integers(1, 50)
    entries = [
        Entry(n, draw(st.sampled_from(["USD", "EUR"])), draw(st.none() | names), tuple(draw(st.lists(names, max_size=1))),
              tuple(draw(st.lists(names, max_size=1))), draw(st.none() | names), tuple(draw(st.lists(small, max_size=3))),
              draw(st.just(0) | small), draw(st.booleans()), draw(st.booleans()), draw(st.none() | st.integers(0, 9)),
              (str(n),), (), draw(st.booleans()))
        for n in range(draw(st.integers(0, 8)))
    ]  # fmt: skip
    coverage = Coverage(draw(st.none() | st.just(0)), draw(st.none() | st.integers(0, 9)), 0, draw(st.booleans()))
    return lines, entries, coverage


@given(wild())
@settings(max_examples=200, deadline=None)
def test_whatever_goes_in_it_balances_and_nothing_is_used_twice(sides) -> None:
    """The report that does not balance does not exist, and each entry is in one place at most."""
    lines, entries, coverage = sides
    found = reconcile(lines, entries, coverage)
    for sums in found.balance.values():
        assert sums.ledger + sums.explained == sums.statement
    assert len(set(found.pairs.values())) == len(found.pairs)
    shown = Counter(row for d in (*found.discrepancies, *found.uncovered) for row in d.rows)
    of_items = {proven.line.item for proven in found.proven}
    assert of_items <= {of.item for of in lines}
    assert set(shown) <= {entry.rows[0] for entry in entries}


def test_ids_that_differ_in_case_are_a_suggestion_and_never_a_match() -> None:
    """A near miss is reported with the item it may mean."""
    made = replace(line(1, 1000, "USD"), target="CH_9XYZ", state=ItemState.UNKNOWN, reference=None, billed=None)
    found = reconcile([made], [Entry(1, "USD", reference="re_x", target="ch_9XyZ", legs=(1000,))], COVERED)
    assert found.counts[Kind.MISSING_IN_LEDGER] == 1
    assert found.discrepancies[0].suggestion == "differs only by case from item item-1"


def test_another_batch_accounts_for_its_own_entries() -> None:
    """What is committed to another batch of the ledger is listed apart, and is in neither total."""
    found = reconcile([], [Entry(1, "USD", reference="re_other", legs=(5,))], COVERED, elsewhere={0})
    assert not found.discrepancies and not found.balance
    assert [e.reference for e in found.elsewhere] == ["re_other"]


def test_another_batch_s_entry_is_no_second_execution_and_no_first() -> None:
    """With the item's own reference, beside its own entry or alone: paired with nothing, counted nowhere."""
    mine = replace(line(1, 500, "USD"), reference="re_mine")
    theirs = Entry(0, "USD", reference="re_theirs", owns=(mine.item,), legs=(500,), at_us=1)
    own = Entry(1, "USD", reference="re_mine", owns=(mine.item,), legs=(500,), at_us=2)
    found = reconcile([mine], [theirs, own], COVERED, elsewhere={0})
    assert not found.discrepancies and found.counts[Kind.MATCHED] == 1 and found.pairs == {mine.item: 1}
    opened = replace(mine, state=ItemState.UNKNOWN, reference=None)
    found = reconcile([opened], [theirs], COVERED, elsewhere={0})
    assert found.elsewhere == (theirs,) and not found.discrepancies and not found.pairs
    assert all(proven.entry is None for proven in found.proven)
