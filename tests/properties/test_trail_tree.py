"""The tree against RFC 6962 written down naively, for every size and place there is, and for any trail."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from payonce.core.events import canonical, leaf_hash, node_hash, plain
from payonce.ledger.merkle import EMPTY_ROOT, Head
from payonce.trail import note
from payonce.trail.note import Note, Signature
from payonce.trail.pruned import Rebuilt, prune
from payonce.trail.scan import scan
from payonce.trail.tree import TrailHashes, Tree, consistency_holds, inclusion_holds


class Rows:
    """A trail in a list, with the hashes that a ledger keeps of it."""

    def __init__(self, size: int) -> None:
        self.rows = [(seq, b'{"seq":%d}' % seq) for seq in range(1, size + 1)]
        self.head = Head()
        self.kept: dict[tuple[int, int], bytes] = {}
        for _, body in self.rows:
            for node in self.head.append(leaf_hash(body)):
                self.kept[node.level, node.index] = node.hash

    def bodies(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        return iter(self.rows[first - 1 : last])

    def nodes(self, level: int, first: int, last: int) -> dict[int, bytes]:
        return {i: self.kept[level, i] for i in range(first, last + 1) if (level, i) in self.kept}


def naive(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1."""
    if not leaves:
        return EMPTY_ROOT
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return node_hash(naive(leaves[:k]), naive(leaves[k:]))


TRAIL = Rows(1100)
TREE = Tree(TrailHashes(TRAIL))
LEAVES = [leaf_hash(body) for _, body in TRAIL.rows]
SIZES = st.integers(1, len(LEAVES))


@given(SIZES)
@settings(max_examples=60, deadline=None)
def test_every_root_is_the_rfcs(size: int) -> None:
    """From kept hashes, from a scan, and from the compact range."""
    root = naive(LEAVES[:size])
    assert TREE.root(size) == root == Rows(size).head.root()
    assert scan(TRAIL, size=size, sizes=[0, size // 2]).roots == {
        0: EMPTY_ROOT,
        size // 2: naive(LEAVES[: size // 2]),
        size: root,
    }


@given(st.data(), SIZES)
@settings(max_examples=200, deadline=None)
def test_every_inclusion_proof_holds_and_only_for_its_event(data: st.DataObject, size: int) -> None:
    """At its place, in its size, under its root; a cut, longer or changed path does not."""
    index = data.draw(st.integers(0, size - 1))
    path, root, leaf = TREE.inclusion(index, size), TREE.root(size), LEAVES[index]
    assert inclusion_holds(leaf, index, size=size, path=path, root=root)
    other = (index + 1) % size
    if other != index:
        assert not inclusion_holds(leaf, other, size=size, path=path, root=root)
    assert not inclusion_holds(leaf, index, size=size, path=[*path, leaf], root=root)
    assert not inclusion_holds(leaf_hash(b"{}"), index, size=size, path=path, root=root)
    if path:
        assert not inclusion_holds(leaf, index, size=size, path=path[:-1], root=root)


@given(st.data(), SIZES)
@settings(max_examples=200, deadline=None)
def test_every_consistency_proof_holds_and_only_for_its_trees(data: st.DataObject, size: int) -> None:
    """An older tree is the beginning of a newer one; another root is not."""
    old = data.draw(st.integers(1, size))
    path = TREE.consistency(old, size)
    roots = {"old_root": TREE.root(old), "root": TREE.root(size)}
    assert consistency_holds(old, size, path=path, **roots)
    assert not consistency_holds(old, size, path=path, old_root=b"\0" * 32, root=roots["root"])
    assert not consistency_holds(old, size, path=path, old_root=roots["old_root"], root=b"\0" * 32)


@given(st.sets(st.integers(1, len(LEAVES)), max_size=30), SIZES)
@settings(max_examples=100, deadline=None)
def test_a_pruned_trail_comes_to_the_same_root(chosen: set[int], size: int) -> None:
    """Whichever events are kept; and without one of its parts it does not."""
    parts = list(prune(TREE, ((s, TRAIL.rows[s - 1][1]) for s in sorted(chosen) if s <= size), size=size))
    rebuilt = Rebuilt()
    for part in parts:
        rebuilt.add(part)
    assert rebuilt.whole and (rebuilt.size, rebuilt.root()) == (size, TREE.root(size))
    short = Rebuilt()
    for part in parts[1:]:
        short.add(part)
    assert (short.size, short.root()) != (size, TREE.root(size))


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1), VALUES, max_size=6))
@settings(max_examples=300, deadline=None)
def test_events_are_canonical_json(body: dict[str, Any]) -> None:
    """Whatever evidence is put into an event, its bytes are those of RFC 8785."""
    clean = {name: value for name, value in plain(body).items() if value is not None}
    assert canonical(clean) == rfc8785.dumps(clean)
    assert hashlib.sha256(b"\0" + canonical(clean)).digest() == leaf_hash(canonical(clean))


LINES = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1).filter(str.strip)


@given(st.lists(LINES, min_size=1, max_size=4), st.lists(st.binary(min_size=5, max_size=70), min_size=1, max_size=3))
@settings(max_examples=100, deadline=None)
def test_notes_survive_being_written_and_read(lines: list[str], signatures: list[bytes]) -> None:
    """One alone, and many in one file."""
    text = "".join(f"x{line}\n" for line in lines if len(line.splitlines()) == 1) or "x\n"
    one = Note(text, tuple(Signature("payonce/x", raw[:4], raw[4:]) for raw in signatures))
    assert note.parse(str(one)) == one
    assert list(note.parse_many(note.join([one, one]))) == [one, one]
