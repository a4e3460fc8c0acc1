"""Keys: their exact values, for ever, and their formats. A key that changed between releases would pay twice."""

from __future__ import annotations

import uuid

import pytest

from payonce.core.errors import ConfigError
from payonce.core.keys import KeyFormat, KeyMaker, derive_key, digest, encode, length_prefixed

# (namespace, batch, operation, step, item, generation) and the key in every format. Computed once, apart from this
# program, from the formula in the documentation. Never edit a line: add new ones.
VECTORS = [
    (
        ("payonce", "refunds-2026-11", "refund", "call", "RF-0001", 0),
        "0d00d1963f7dded28fb095da3638b28069a7a53b704312362c3e1607bdfad93b",
        "0d00d196-3f7d-8ed2-8fb0-95da3638b280",
        "buandfr7pxpnfd5qsxndmofsqbu2pjj3obbrenrmhylappp23e5q",
    ),
    (
        ("payonce", "refunds-2026-11", "refund", "call", "RF-0001", 1),
        "31bfadcee700420afcec1f17ff25508232995cfe166bb011dd645544f94baf4a",
        "31bfadce-e700-820a-bcec-1f17ff255082",
        "gg723txhabbav7hmd4l76jkqqizjsxh6czv3aeo5mrkuj6klv5fa",
    ),
    (
        ("payonce", "b", "payout", "fund", "Ünïcode-№7", 0),
        "a63b51a64231765b54d050cbb9c12765d46f8dc1337954f945fe41b03a86f3d9",
        "a63b51a6-4231-865b-94d0-50cbb9c12765",
        "uy5vdjscgf3fwvgqkdf3tqjhmxkg7dobgn4vj6kf7za3aoug6pmq",
    ),
    (
        ("", "", "", "", "", 0),
        "a2095ea868cc9c7a37091f1929375d7f89a94cf6bc6c64dd679e51d20595061d",
        "a2095ea8-68cc-8c7a-b709-1f1929375d7f",
        "uiev5kdizsohunyjd4mssn25p6e2sthwxrwgjxlhtzi5ebmvayoq",
    ),
    (
        ("acme", "x", "call", "call", "0007", 12),
        "161fd61c7fd86792c7a701d1c3de54038cb00ca2b8d5e23b14fe4bdec4db8ecc",
        "161fd61c-7fd8-8792-87a7-01d1c3de5403",
        "cyp5mhd73btzfr5hahi4hxsuaogladfcxdk6eoyu7zf55rg3r3ga",
    ),
]
NAMES = ("namespace", "batch", "operation", "step", "item", "generation")


@pytest.mark.parametrize(("parts", "hexed", "uuid_text", "base32"), VECTORS)
def test_frozen_vectors(parts: tuple[str | int, ...], hexed: str, uuid_text: str, base32: str) -> None:
    """These tuples have these keys in every release."""
    named = dict(zip(NAMES, parts, strict=True))
    for key_format, expected in (
        (KeyFormat("hex"), hexed),
        (KeyFormat("hex", 64), hexed),
        (KeyFormat("hex", 45), hexed[:45]),
        (KeyFormat("hex", 32), hexed[:32]),
        (KeyFormat("uuid"), uuid_text),
        (KeyFormat("base32"), base32),
        (KeyFormat("base32", 26), base32[:26]),
        (KeyFormat("bytes32"), "0x" + hexed),
    ):
        key = derive_key(key_format, **named)  # type: ignore[arg-type]
        assert key == expected
        assert key_format.fits(key) and len(key) == key_format.length


def test_a_uuid_is_of_version_8_and_of_the_rfc_variant() -> None:
    """Even for digests of all zeros and all ones; the other 122 bits are the digest's."""
    for data in (bytes(32), b"\xff" * 32):
        found = uuid.UUID(encode(data, KeyFormat("uuid")))
        assert (found.version, found.variant) == (8, uuid.RFC_4122)
    assert encode(b"\xff" * 32, KeyFormat("uuid")) == "ffffffff-ffff-8fff-bfff-ffffffffffff"


@pytest.mark.parametrize(
    ("name", "limit"), [("hex", 31), ("hex", 0), ("hex", -1), ("base32", 25), ("uuid", 35), ("bytes32", 65)]
)
def test_keys_under_128_bits_are_refused(name: str, limit: int) -> None:
    """A provider that takes no more cannot be given keys: two items might share one."""
    with pytest.raises(ConfigError) as caught:
        KeyFormat(name, limit)  # type: ignore[arg-type]
    assert caught.value.code == "key_too_short"


def test_an_unknown_format_is_refused() -> None:
    """Nothing falls back to another format."""
    with pytest.raises(ConfigError) as caught:
        KeyFormat("UUID")  # type: ignore[arg-type]
    assert caught.value.code == "bad_key_format"


@pytest.mark.parametrize(
    ("name", "limit", "length"),
    [("hex", 255, 64), ("hex", 45, 45), ("uuid", 255, 36), ("uuid", 36, 36), ("base32", 255, 52), ("base32", 30, 30)],
)
def test_every_key_of_a_format_has_one_length(name: str, limit: int, length: int) -> None:
    """The digest's length, or the provider's limit where that is shorter."""
    assert KeyFormat(name, limit).length == length  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("hex", "A" * 64),
        ("hex", "0" * 63),
        ("hex", "0" * 64 + "\n"),
        ("base32", "1" * 52),
        ("uuid", "0d00d196-3f7d-4ed2-8fb0-95da3638b280"),
        ("uuid", "0d00d196-3f7d-8ed2-cfb0-95da3638b280"),
        ("bytes32", "00" + "0" * 64),
    ],
)
def test_a_foreign_key_does_not_fit(name: str, wrong: str) -> None:
    """Another alphabet, length, version or variant is noticed."""
    assert not KeyFormat(name).fits(wrong)  # type: ignore[arg-type]


def test_a_length_comes_before_each_part() -> None:
    """Eight bytes, counting UTF-8 bytes and not characters."""
    assert length_prefixed("é") == b"\0\0\0\0\0\0\0\2\xc3\xa9"
    assert length_prefixed("") == bytes(8)


def test_a_maker_is_not_used_up() -> None:
    """One maker gives the same key for the same item again, after any number of others."""
    maker = KeyMaker(KeyFormat(), namespace="n", batch="b", operation="o")
    first = maker.key("1", step="call", generation=0)
    assert {maker.key(str(n), step="call", generation=0) for n in range(2, 50)}.isdisjoint({first})
    assert maker.key("1", step="call", generation=0) == first


def test_a_digest_is_sha256_in_hex() -> None:
    """How bytes are named in the trail."""
    assert digest(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
