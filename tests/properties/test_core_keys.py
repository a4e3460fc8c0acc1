"""Keys of any tuples: the same tuple the same key, two different ones never."""

from __future__ import annotations

import re
import uuid

from hypothesis import given
from hypothesis import strategies as st

from payonce.core.keys import KeyFormat, KeyMaker, derive_key, length_prefixed

# Few letters, so that the same texts arise by different cuts; and real unicode beside them.
PART = st.text(alphabet="ab01\0:|,-é", max_size=4) | st.text(max_size=12)
PARTS = st.tuples(PART, PART, PART, PART, PART, st.integers(0, 20))
FORMATS = st.one_of(
    st.builds(KeyFormat, st.just("hex"), st.integers(32, 300)),
    st.builds(KeyFormat, st.just("base32"), st.integers(26, 300)),
    st.builds(KeyFormat, st.just("uuid"), st.integers(36, 300)),
    st.builds(KeyFormat, st.just("bytes32"), st.integers(66, 300)),
)
ALPHABETS = {
    "hex": r"[0-9a-f]{32,64}",
    "base32": r"[a-z2-7]{26,52}",
    "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "bytes32": r"0x[0-9a-f]{64}",
}


def key_of(parts: tuple[str, str, str, str, str, int], key_format: KeyFormat) -> str:
    """The key of a tuple in the order of the formula."""
    namespace, batch, operation, step, item, generation = parts
    return derive_key(
        key_format,
        namespace=namespace,
        batch=batch,
        operation=operation,
        step=step,
        item=item,
        generation=generation,
    )


@given(one=PARTS, other=PARTS, key_format=FORMATS)
def test_different_tuples_have_different_keys(
    one: tuple[str, str, str, str, str, int], other: tuple[str, str, str, str, str, int], key_format: KeyFormat
) -> None:
    """Two keys are equal exactly if every part is."""
    assert (key_of(one, key_format) == key_of(other, key_format)) == (one == other)


@given(text=st.text(min_size=1, max_size=12), cuts=st.tuples(st.integers(0, 12), st.integers(0, 12)))
def test_letters_that_move_over_a_boundary_change_the_key(text: str, cuts: tuple[int, int]) -> None:
    """The same letters cut at another place into batch, operation, step and item make another key."""
    first, second = (min(cut, len(text)) for cut in cuts)
    keys = {key_of(("n", text[:first], text[first:], "s", "i", 0), KeyFormat())}
    keys.add(key_of(("n", text[:second], text[second:], "s", "i", 0), KeyFormat()))
    keys.add(key_of(("n", "", "", text[:first], text[first:], 0), KeyFormat()))
    keys.add(key_of(("n", "", "", text[:second], text[second:], 0), KeyFormat()))
    assert len(keys) == (2 if first == second else 4)


@given(item=st.text(max_size=8), generation=st.integers(0, 999), digits=st.integers(1, 3))
def test_an_item_never_runs_into_its_generation(item: str, generation: int, digits: int) -> None:
    """Item "1" in generation 11 is not item "11" in generation 1."""
    text = f"{item}{generation:0{digits}d}"
    for cut in range(1, len(text)):
        if not text[cut:].isascii() or not text[cut:].isdigit():
            continue
        here = key_of(("n", "b", "o", "s", text[:cut], int(text[cut:])), KeyFormat())
        assert (here == key_of(("n", "b", "o", "s", item, generation), KeyFormat())) == (
            (text[:cut], int(text[cut:])) == (item, generation)
        )


@given(parts=st.lists(PART, max_size=4), others=st.lists(PART, max_size=4))
def test_prefixed_parts_are_read_back_in_one_way(parts: list[str], others: list[str]) -> None:
    """Two lists of parts give the same bytes only if they are the same list: no digest is needed for that."""
    joined = b"".join(length_prefixed(part) for part in parts)
    assert (joined == b"".join(length_prefixed(part) for part in others)) == (parts == others)


@given(parts=PARTS, key_format=FORMATS)
def test_a_maker_makes_the_derived_key(parts: tuple[str, str, str, str, str, int], key_format: KeyFormat) -> None:
    """The maker's shortcut over the common prefix gives the very same keys, again and again."""
    namespace, batch, operation, step, item, generation = parts
    maker = KeyMaker(key_format, namespace=namespace, batch=batch, operation=operation)
    for _ in range(2):
        assert maker.key(item, step=step, generation=generation) == key_of(parts, key_format)


@given(parts=PARTS, key_format=FORMATS)
def test_every_key_has_its_formats_length_and_alphabet(
    parts: tuple[str, str, str, str, str, int], key_format: KeyFormat
) -> None:
    """Within the provider's limit, printable ASCII, and a UUID of version 8 and the RFC's variant."""
    key = key_of(parts, key_format)
    assert len(key) == key_format.length <= key_format.max_length
    assert re.fullmatch(ALPHABETS[key_format.name], key) and key_format.fits(key)
    if key_format.name == "uuid":
        assert (uuid.UUID(key).version, uuid.UUID(key).variant) == (8, uuid.RFC_4122)
