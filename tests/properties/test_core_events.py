"""The canonical form of any event: exactly RFC 8785, as another implementation writes it."""

from __future__ import annotations

from typing import Any

import orjson
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from payonce.core.events import canonical, from_iso, iso, plain

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)  # halves of surrogate pairs included
SCALARS = st.none() | st.booleans() | ANY_TEXT | st.integers() | st.floats() | st.decimals()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=12,
)
BODIES = st.dictionaries(ANY_TEXT, VALUES, max_size=8)


def no_nulls(body: dict[str, Any]) -> dict[str, Any]:
    """A body without its top-level nulls."""
    return {key: value for key, value in body.items() if value is not None}


@given(body=BODIES)
def test_canonical_is_rfc_8785(body: dict[str, Any]) -> None:
    """Byte for byte what the rfc8785 package writes, for whatever was made plain."""
    made = plain(body)
    assert canonical(made) == rfc8785.dumps(no_nulls(made))


@given(body=BODIES)
def test_canonical_reads_back_as_the_same_body(body: dict[str, Any]) -> None:
    """Nothing is lost or changed but top-level nulls."""
    made = plain(body)
    assert orjson.loads(canonical(made)) == no_nulls(made)


@given(body=BODIES, order=st.randoms(use_true_random=False))
def test_canonical_does_not_depend_on_the_order_of_keys(body: dict[str, Any], order: Any) -> None:
    """The same facts have the same bytes, in whatever order they were put together."""
    made = plain(body)
    keys = list(made)
    order.shuffle(keys)
    assert canonical({key: made[key] for key in keys}) == canonical(made)


def kinds(value: Any) -> set[type]:
    """All types that occur in a value."""
    found = {type(value)}
    if isinstance(value, dict):
        return found.union(*(kinds(v) for v in value.values()))
    return found.union(*(kinds(v) for v in value)) if isinstance(value, list) else found


@given(value=VALUES)
def test_plain_leaves_no_float_and_no_large_number(value: Any) -> None:
    """Floats and numbers that JSON readers round become text; making a plain value plain changes nothing."""
    made = plain(value)
    assert kinds(made) <= {type(None), bool, str, int, list, dict}
    assert plain(made) == made


@given(number=st.integers())
def test_whole_numbers_are_exact(number: int) -> None:
    """As a number where every reader holds it exactly, as text where not."""
    made = plain(number)
    assert int(made) == number
    assert isinstance(made, int) == (abs(number) < 2**53)


@given(us=st.integers(0, 253_402_300_799_999_999))
def test_times_round_trip(us: int) -> None:
    """Microseconds to text and back are the same microseconds, until the end of the year 9999."""
    text = iso(us)
    assert from_iso(text) == us
    assert len(text) == 27 and text.endswith("Z")


@given(one=st.integers(0, 4_000_000_000_000_000), other=st.integers(0, 4_000_000_000_000_000))
def test_times_as_text_sort_as_times(one: int, other: int) -> None:
    """All have one length, so text order is time order."""
    assert (iso(one) < iso(other)) == (one < other)
