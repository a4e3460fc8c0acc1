"""Any set of items and executions: each item in one class, each execution in one place, and reversing the extras is enough."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from payonce.audit.model import Found, Seen, Wish
from payonce.audit.sort import sort
from payonce.core.money import Money


@st.composite
def runs(draw: st.DrawFn):
    """Items, some on shared targets, each executed zero to three times, some with a wrong amount, and strangers."""
    wishes: list[Wish] = []
    seen: list[Seen] = []
    expected: dict[str, Found] = {}
    carries_ours = draw(st.booleans())
    for n in range(1, draw(st.integers(1, 12)) + 1):
        # Amounts differ within a target, so that even without references of ours the truth is recoverable.
        wish = Wish(f"i{n}", f"ch_{n // 2}" if carries_ours else f"ch_{n}", Money.of_minor(100 + n, "USD"))
        times = draw(st.integers(0, 3))
        wrong = times == 1 and draw(st.booleans())
        wishes.append(wish)
        expected[wish.item] = (
            Found.NONE if times == 0 else Found.WRONG_AMOUNT if wrong else
            Found.EXACTLY_ONE if times == 1 else Found.MORE_THAN_ONE)  # fmt: skip
        for number in range(times):
            money = Money.of_minor(9999, "USD") if wrong else wish.money
            owns = (wish.item,) if carries_ours else ()
            seen.append(Seen(len(seen), f"re_{n}_{number}", money, owns, wish.target, at_us=draw(st.integers(0, 50))))
    strangers = draw(st.integers(0, 3))
    seen += [Seen(1000 + n, f"re_s{n}", Money.of_minor(1, "USD"), (), "elsewhere", at_us=5) for n in range(strangers)]
    return wishes, draw(st.permutations(seen)), expected, strangers


@given(runs())
@settings(max_examples=150, deadline=None)
def test_every_item_is_sorted_and_reversing_the_extras_is_enough(run) -> None:
    """The classes come back exactly; the earliest is kept; after the extras are undone nobody has more than one."""
    wishes, seen, expected, strangers = run
    found = sort(wishes, seen)
    assert dict(found.classes) == expected
    assert len(found.kept) + len(found.extras) + sum(s.count for s in found.strangers) == len(seen)
    assert sum(s.count for s in found.strangers) == strangers
    for extra in found.extras:
        kept = found.kept[extra.item]
        assert kept.at_us <= extra.seen.at_us
    gone = {extra.seen.reference for extra in found.extras}
    after = sort(wishes, [replace(one, undone=one.reference in gone) for one in seen])
    assert not after.extras and after.count(Found.MORE_THAN_ONE) == 0
    assert after.undone == len(gone)


def test_partial_refunds_of_one_charge_share_its_executions_by_amount() -> None:
    """Two legitimate partial refunds are two items; a third execution of one of the amounts is the extra."""
    wishes = [Wish("a", "ch", Money("5.00", "USD")), Wish("b", "ch", Money("7.00", "USD"))]
    seen = [
        Seen(n, f"re_{n}", Money(amount, "USD"), (), "ch", at_us=n) for n, amount in enumerate(["7.00", "5.00", "5.00"])
    ]
    found = sort(wishes, seen)
    assert found.classes == {"a": Found.MORE_THAN_ONE, "b": Found.EXACTLY_ONE}
    assert [(e.item, e.seen.reference, e.kept) for e in found.extras] == [("a", "re_2", "re_1")]


def test_of_executions_at_one_time_the_own_reference_and_then_the_older_end_of_the_list_decides() -> None:
    """A list that begins with the newest shows the first execution last; an own reference counts more than the place."""
    money = Money("5.00", "USD")
    wishes = [Wish("a", "ch_a", money), Wish("b", "ch_b", money)]
    newest_first = [
        Seen(0, "re_b", money, (), "ch_b", at_us=9),
        Seen(1, "re_later", money, (), "ch_a", at_us=5),
        Seen(2, "re_first", money, (), "ch_a", at_us=5),
    ]
    assert sort(wishes, newest_first).kept["a"].reference == "re_first"
    oldest_first = [replace(seen, place=2 - seen.place) for seen in newest_first[1:]]
    oldest_first.append(replace(newest_first[0], place=5))
    assert sort(wishes, oldest_first).kept["a"].reference == "re_first"
    own = [newest_first[0], replace(newest_first[1], owns=("a",)), newest_first[2]]
    assert sort(wishes, own).kept["a"].reference == "re_later"
