"""The form of events: hashes of the public test vectors, escapes, times."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from payonce.core.events import canonical, from_iso, iso, leaf_hash, node_hash, plain, well_formed
from payonce.core.states import ItemState

# The leaves and tree heads that Certificate Transparency implementations test RFC 6962 with.
LEAVES = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
]
HEADS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def head(leaves: list[bytes]) -> bytes:
    """The Merkle tree head as RFC 6962 section 2.1 defines it."""
    if len(leaves) == 1:
        return leaf_hash(leaves[0])
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return node_hash(head(leaves[:split]), head(leaves[split:]))


@pytest.mark.parametrize("size", range(1, 9))
def test_rfc_6962_vectors(size: int) -> None:
    """Leaf and node hashes give the known tree heads of one to eight leaves."""
    assert head([bytes.fromhex(leaf) for leaf in LEAVES[:size]]).hex() == HEADS[size - 1]


def test_a_leaf_is_no_node() -> None:
    """The same bytes hash differently as a leaf and as a node: no tree passes for another."""
    left, right = bytes(32), b"\x01" * 32
    assert leaf_hash(left + right) != node_hash(left, right) != node_hash(right, left)


def test_escapes_are_the_shortest_ones() -> None:
    """As RFC 8785 section 3.2.2.2: short escapes where there are some, lower-case hex else, everything else as it is."""
    text = '\b\t\n\f\r"\\/\x00\x1f\x7f\u2028€😀'
    assert canonical({"t": text}) == '{"t":"\\b\\t\\n\\f\\r\\"\\\\/\\u0000\\u001f\x7f\u2028€😀"}'.encode()


def test_top_level_nulls_are_left_out() -> None:
    """A fact that is not known has no entry; inside a payload null is a value."""
    assert canonical({"b": None, "a": {"x": None}}) == b'{"a":{"x":null}}'


def test_plain_values() -> None:
    """Floats keep their digits as text, Decimals and states their text; keys that are no text become text."""
    assert plain({"f": 0.1, "d": Decimal("1.50"), "s": ItemState.PENDING, 7: (True, None, 2**53)}) == {
        "f": "0.1",
        "d": "1.50",
        "s": "pending",
        "7": [True, None, str(2**53)],
    }


def test_half_characters_are_written_out() -> None:
    """A lone half of a surrogate pair, which UTF-8 cannot hold, never keeps an event from being written."""
    assert well_formed("a\ud800é") == "a\\ud800é"
    assert canonical(plain({"\udfff": "\ud800"})) == rb'{"\\udfff":"\\ud800"}'


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1, "1970-01-01T00:00:00.000001Z"),
        (1_796_025_600_000_000, "2026-11-30T08:00:00.000000Z"),
        (951_827_696_999_999, "2000-02-29T12:34:56.999999Z"),
    ],
)
def test_times_are_utc_with_microseconds(us: int, text: str) -> None:
    """Always the same form, whatever the time zone of the machine."""
    assert iso(us) == text
    assert from_iso(text) == us
    assert datetime.fromtimestamp(us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S") == text[:19]


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("2026-11-30T09:00:00+01:00", 1_796_025_600_000_000),
        ("2026-11-30T08:00:00", 1_796_025_600_000_000),
        ("2026-11-30", 1_795_996_800_000_000),
        ("2026-11-30T08:00:00.5Z", 1_796_025_600_500_000),
    ],
)
def test_other_iso_times_are_read(text: str, us: int) -> None:
    """Offsets are honoured; a time without one is UTC."""
    assert from_iso(text) == us


@pytest.mark.parametrize("text", ["", "yesterday", "30.11.2026", "2026-13-01", "1796025600"])
def test_what_is_no_iso_time_is_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError):
        from_iso(text)
