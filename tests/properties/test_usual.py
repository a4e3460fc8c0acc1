"""The usual cases written out are the rules: whatever happens, both come to the same."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payonce.core.events import leaf_hash
from payonce.core.states import ItemEvent
from payonce.ledger import rules, usual
from payonce.ledger.forms import ANSWERS, escaped, execution, is_safe
from payonce.ledger.merkle import Head
from payonce.testing.ledger_random import ITEMS, Step, histories, play, runs
from payonce.testing.ledger_world import World
from tests.conformance.test_ledgers import MemoryFactory


class _Nothing(usual.Usual):
    """Nothing is usual: everything goes by the rules."""

    def intend(self, *_: Any) -> bool:
        return False

    def commit(self, *_: Any) -> bool:
        return False


def _played(history: list[Step], targets: bool) -> list[Any]:
    world = World(MemoryFactory())
    try:
        return play(world, history, targets=targets)
    finally:
        world.close()


@settings(max_examples=300, deadline=None)
@given(history=runs | histories, targets=st.booleans())
def test_the_usual_cases_are_the_rules(history: list[Step], targets: bool) -> None:
    """Same answers, items, tallies, findings and event bytes, with and without them."""
    with patch.object(rules, "Usual", _Nothing):
        slowly = _played(history, targets)
    assert _played(history, targets) == slowly


@pytest.mark.parametrize("n", [1, ITEMS - 2])
@pytest.mark.parametrize("texts", ANSWERS)
def test_each_form_is_used_and_is_what_the_rules_write(n: int, texts: tuple[str, ...]) -> None:
    """With a key and without one, with all that an answer may leave behind and with its times alone."""
    data = {name: 200 if name == "status" else f"{name} said" for name in texts}
    history: list[Step] = [("intend", 0, n, 0), ("change", 0, n, (ItemEvent.COMMIT, {"data": data, "reference": "r"}))]
    with patch.object(rules, "Usual", _Nothing):
        slowly = _played(history, targets=True)
    with patch.object(usual, "execution", wraps=execution) as used:
        assert _played(history, targets=True) == slowly
    assert used.called


@given(sizes=st.lists(st.integers(0, 40), max_size=12))
def test_many_leaves_at_once_grow_the_same_tree(sizes: list[int]) -> None:
    """Peaks, size, last leaf and completed nodes are those of one leaf after the other."""
    one, other = Head(), Head()
    for size in [250, *sizes]:
        leaves = [leaf_hash(b"%d" % n) for n in range(one.size, one.size + size)]
        nodes = [node for leaf in leaves for node in one.append(leaf)]
        assert other.extend(leaves) == nodes
        assert other == one


@given(texts=st.lists(st.text(), min_size=1, max_size=4))
def test_a_text_that_needs_an_escape_gets_it(texts: list[str]) -> None:
    """What is called safe stands in JSON as it is; everything else is written as JSON writes it."""
    written = [f'"{text}"' for text in (texts if is_safe(texts) else escaped(texts))]
    assert [orjson.loads(text) for text in written] == texts
    assert [text.encode() for text in written] == [orjson.dumps(text) for text in texts]
