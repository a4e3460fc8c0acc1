"""The compact range gives RFC 6962's tree, and the kept hashes are its inner nodes."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from payonce.core.events import leaf_hash, node_hash
from payonce.ledger.merkle import EMPTY_ROOT, Head, pack, unpack

# The leaves and roots of certificate-transparency's reference tests (merkletree/merkle_tree_test in the CT repository).
_LEAVES = [bytes.fromhex(h) for h in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657")] + [
    bytes.fromhex("606162636465666768696a6b6c6d6e6f")
]
_ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def _reference(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, as it is written there."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return node_hash(_reference(leaves[:k]), _reference(leaves[k:]))


def test_known_roots() -> None:
    """The published test vectors."""
    head = Head()
    assert head.root() == EMPTY_ROOT
    for leaf, root in zip(_LEAVES, _ROOTS, strict=True):
        head.append(leaf_hash(leaf))
        assert head.root().hex() == root


@given(st.integers(0, 1100))
def test_any_size_gives_the_rfcs_root_and_kept_nodes(size: int) -> None:
    """And the head survives being stored and read back at any point."""
    leaves = [leaf_hash(str(n).encode()) for n in range(size)]
    head, kept = Head(), {}
    for leaf in leaves:
        for node in head.append(leaf):
            kept[node.level, node.index] = node.hash
    again = Head(head.size, unpack(pack(head.peaks)), head.last_leaf, head.last_us)
    assert again.root() == head.root() == _reference(leaves)
    assert kept == {(8, i): _reference(leaves[i * 256 : i * 256 + 256]) for i in range(size // 256)}
