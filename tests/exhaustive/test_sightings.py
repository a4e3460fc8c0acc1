"""Which executions of a look-up are ours: every kind of execution, alone and in pairs, for every kind of look-up."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from payonce.core.decide import (
    CLOCK_TOLERANCE_US,
    Absent,
    Ambiguous,
    FailedAtProvider,
    Ours,
    Sighting,
    SomeoneElses,
    WrongAmount,
    judge,
)
from payonce.core.model import Declaration, LookupDeclaration
from payonce.core.money import Money
from payonce.core.outcome import Execution, Found
from tests.exhaustive.decisionkit import ASKED, LAG_US, SENT_US, declare, intent, item

MARKS = {"reference": ("r1", None), "key": (None, "key-0"), "other": ("r2", "key-9"), "none": (None, None)}
TIMES = {
    "long before": SENT_US - CLOCK_TOLERANCE_US - 1,
    "within tolerance": SENT_US - CLOCK_TOLERANCE_US,
    "after": SENT_US + 1,
    "not told": None,
}
MONEY = {"asked": ASKED, "less": Money("9.99", "USD"), "euros": Money("10.00", "EUR"), "not told": None}
LOOKUPS = {
    "reference": LookupDeclaration("x", LAG_US, own_reference=True),
    "key": LookupDeclaration("x", LAG_US, key=True),
    "reference and key": LookupDeclaration("x", LAG_US, own_reference=True, key=True),
    "neither": LookupDeclaration("x", LAG_US),
}


@dataclass(frozen=True)
class Kind:
    """One kind of execution."""

    mark: str
    at: str
    money: str
    failed: bool

    def build(self, reference: str) -> Execution:
        """An execution of this kind."""
        own, key = MARKS[self.mark]
        return Execution(reference, MONEY[self.money], own, key, TIMES[self.at], failed=self.failed)

    def may_be_ours(self, lookup: str) -> bool:
        """Whether nothing rules it out. Our mark rules it in; without echoes only its time can rule it out."""
        if lookup != "neither":
            return self.mark in ("reference", "key")
        return self.at != "long before"

    def is_surely_ours(self, lookup: str) -> bool:
        """Whether it is ours beyond doubt, with the amount asked: by our mark, or by a time and amount that are told."""
        if lookup != "neither":
            return self.mark in ("reference", "key") and self.money in ("asked", "not told")
        return self.at in ("within tolerance", "after") and self.money == "asked"


KINDS = [Kind(*parts) for parts in itertools.product(MARKS, TIMES, MONEY, (False, True))]


def sight(lookup: str, *kinds: Kind, claimed: frozenset[str] = frozenset()) -> Sighting:
    """What the program makes of a look-up that shows executions of these kinds, in this order."""
    shown = tuple(kind.build(f"re_{n}") for n, kind in enumerate(kinds))
    return judge(Found(shown), intent(), declaration(lookup), claimed=claimed)


def declaration(lookup: str) -> Declaration:
    """A provider with keys and one kind of look-up."""
    return declare("both", lookup=LOOKUPS[lookup])


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_nothing_shown(lookup: str) -> None:
    """An empty answer shows that nothing was executed."""
    assert sight(lookup) == Absent()


def is_lone(lookup: str, *living: Kind) -> bool:
    """Whether the one execution that may be ours is undated and over the amount asked: without an echo it counts."""
    may = [k for k in living if k.at != "long before"]
    return lookup == "neither" and len(may) == 1 and may[0].at == "not told" and may[0].money == "asked"


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_one_living_execution_of_every_kind(lookup: str) -> None:
    """Ours if it surely is; another amount or a doubt if it may be; someone else's if it cannot be."""
    for kind in (k for k in KINDS if not k.failed):
        seen = sight(lookup, kind)
        if kind.is_surely_ours(lookup) or is_lone(lookup, kind):
            assert seen == Ours(kind.build("re_0")), kind
        elif not kind.may_be_ours(lookup):
            assert seen == SomeoneElses((kind.build("re_0"),)), kind
        elif kind.money in ("less", "euros") and (lookup != "neither" or kind.at != "not told"):
            assert seen == WrongAmount(kind.build("re_0")), kind
        else:
            assert seen == Ambiguous(kind.build("re_0")), kind


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_one_failed_execution_of_every_kind(lookup: str) -> None:
    """Ours and failed, if it surely is ours and of this try; never committed; never taken for someone's success."""
    for kind in (k for k in KINDS if k.failed):
        seen = sight(lookup, kind)
        if lookup != "neither":
            ours = kind.mark in ("reference", "key") and kind.at != "long before"
            assert isinstance(seen, FailedAtProvider if ours else Absent), kind
        elif kind.at == "long before" or kind.money in ("less", "euros"):
            assert seen == Absent(), kind
        else:
            certain = kind.at != "not told" and kind.money == "asked"
            assert isinstance(seen, FailedAtProvider if certain else Ambiguous), kind


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_every_pair(lookup: str) -> None:
    """Whatever stands beside it: what may be ours and lives keeps the item from being sent again, and a commit needs one
    that surely is ours; further ones of ours are duplicates."""
    for first, second in itertools.product(KINDS, repeat=2):
        seen = sight(lookup, first, second)
        living = [k for k in (first, second) if not k.failed]
        sure = [k for k in living if k.is_surely_ours(lookup)]
        if isinstance(seen, Absent | SomeoneElses):
            assert not any(k.may_be_ours(lookup) for k in living), (first, second)
        lone = not sure and is_lone(lookup, *living)
        assert isinstance(seen, Ours) == (bool(sure) or lone), (first, second)
        if isinstance(seen, Ours) and not lone:
            chosen = 0 if first in sure else 1
            assert seen.execution.reference == f"re_{chosen}", "the earliest is kept"
            echoed = [k for k in living if k.may_be_ours(lookup)] if lookup != "neither" else sure
            assert len(seen.extra) == len(echoed) - 1, (first, second)


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_what_is_committed_to_other_items_does_not_count(lookup: str) -> None:
    """An execution that another item claims is not there, whatever it looks like."""
    for first, second in itertools.product(KINDS[::3], KINDS[::5]):
        without = judge(Found((second.build("re_1"),)), intent(), declaration(lookup), claimed=frozenset())
        assert sight(lookup, first, second, claimed=frozenset({"re_0"})) == without
        assert sight(lookup, first, second, claimed=frozenset({"re_0", "re_1"})) == Absent()


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_a_reference_that_two_executions_may_have_never_proves_absence(lookup: str) -> None:
    """A reference that is committed on another target only: what may be ours under it is for a person, never absent;
    what another amount or mark rules out stays ruled out."""
    named = frozenset({"re_0"})
    for kind in KINDS:
        execution = kind.build("re_0")
        seen = judge(Found((execution,)), intent(), declaration(lookup), claimed=named, elsewhere=named)
        alone = judge(Found((execution,)), intent(), declaration(lookup), claimed=frozenset())
        doubtful = isinstance(alone, Ours | Ambiguous) or (isinstance(alone, WrongAmount) and lookup != "neither")
        assert seen == (Ambiguous(execution) if doubtful else Absent()), kind


def test_a_reference_is_compared_exactly() -> None:
    """Case, blanks and zeros in front make another item."""
    for other in ("R1", "r1 ", "r01", "r", "r11", ""):
        found = Found((Execution("re_0", ASKED, other, None, SENT_US + 1),))
        assert isinstance(judge(found, intent(), declaration("reference"), claimed=frozenset()), SomeoneElses)


def test_a_call_without_a_key_matches_no_execution_without_one() -> None:
    """Two things that are missing are not equal."""
    found = Found((Execution("re_0", ASKED, None, None, SENT_US + 1),))
    assert isinstance(judge(found, intent(key=None), declaration("key"), claimed=frozenset()), SomeoneElses)


def test_our_reference_of_an_earlier_generation_counts() -> None:
    """An execution under an earlier key that carries our reference is ours: it must not be paid again."""
    found = Found((Execution("re_0", ASKED, "r1", "key-of-generation-0", SENT_US - 10**12),))
    now = intent(item(generation=1), key="key-of-generation-1")
    assert isinstance(judge(found, now, declaration("reference and key"), claimed=frozenset()), Ours)


def test_an_item_without_an_amount_takes_what_was_billed() -> None:
    """Where no amount was asked, none can be wrong."""
    asked_nothing = intent(item(money=None))
    for lookup in LOOKUPS:
        own = "r1" if lookup != "neither" else None
        found = Found((Execution("re_0", Money("0.03", "USDC"), own, "key-0", SENT_US + 1),))
        assert isinstance(judge(found, asked_nothing, declaration(lookup), claimed=frozenset()), Ours)


def test_an_execution_under_our_reference_from_long_before_needs_a_person() -> None:
    """Someone used the same number days ago: it is neither taken for ours nor sent again; a later one is ours."""
    old = Execution("re_old", ASKED, "r1", None, SENT_US - 10**12)
    new = Execution("re_new", ASKED, "r1", None, SENT_US + 1)
    alone = judge(Found((old,)), intent(), declaration("reference"), claimed=frozenset())
    both = judge(Found((old, new)), intent(), declaration("reference"), claimed=frozenset())
    assert alone == Ambiguous(old)
    assert both == Ours(new)
