"""Timestamps of checkpoints by an authority (RFC 3161): a third party says that a checkpoint existed at a moment.

Asks, compares what came back with what was asked (granted, this digest, this nonce), and keeps the answer as a file. Its
signature is checked by whoever relies on it, with the authority's certificate: ``openssl ts -verify``. No credentials are
sent, and nothing but a digest leaves the machine.
"""

from __future__ import annotations

import hashlib
import secrets
import urllib.request
from pathlib import Path
from typing import Final

from payonce.trail.checkpoint import Signed

_TIMEOUT_S: Final = 20.0
_LARGEST: Final = 1 << 20
_NONCE_BYTES: Final = 8
# AlgorithmIdentifier of SHA-256: SEQUENCE of its object identifier and NULL.
_SHA256: Final = bytes.fromhex("300d06096086480165030402010500")


def request(digest: bytes, nonce: bytes) -> bytes:
    """A TimeStampReq in DER: version 1, the digest, the nonce, and the wish for the certificate."""
    imprint = _der(0x30, _SHA256 + _der(0x04, digest))
    return _der(0x30, _der(0x02, b"\x01") + imprint + _integer(nonce) + _der(0x01, b"\xff"))


def _der(tag: int, content: bytes) -> bytes:
    assert len(content) < 128, "a request is short"
    return bytes([tag, len(content)]) + content


def _integer(raw: bytes) -> bytes:
    return _der(0x02, b"\0" + raw if raw[0] & 0x80 else raw)


def refusal(answer: bytes, *, digest: bytes, nonce: bytes) -> str | None:
    """Why an answer is no timestamp of what was asked; None where it is one."""
    status = _status(answer)
    if status not in (0, 1):
        return (
            f"the authority did not grant it (status {status})" if status is not None else "the answer is no timestamp"
        )
    if _SHA256 + _der(0x04, digest) not in answer or _integer(nonce) not in answer:
        return "the answer is about something else"
    return None


def _status(answer: bytes) -> int | None:
    """PKIStatus: the first integer of the first sequence of a TimeStampResp; None where there is none."""
    at = _content(answer, 0, 0x30)
    inner = None if at is None else _content(answer, at, 0x30)
    start = None if inner is None else _content(answer, inner, 0x02)
    return answer[start] if start is not None and start < len(answer) else None


def _content(data: bytes, at: int, tag: int) -> int | None:
    """Where the content of the element at a place begins, if it has this tag."""
    if len(data) < at + 2 or data[at] != tag:
        return None
    return at + 2 + (data[at + 1] & 0x7F if data[at + 1] & 0x80 else 0)


def stamp(signed: Signed, *, url: str, folder: Path) -> str | None:
    """Has a checkpoint timestamped; returns why it was not, None where it was.

    Leaves ``SIZE.txt`` (the checkpoint's bytes) and ``SIZE.tsr`` (the answer) in the folder, each whole or not at all.
    """
    text = str(signed).encode()
    digest, nonce = hashlib.sha256(text).digest(), secrets.token_bytes(_NONCE_BYTES)
    asked = urllib.request.Request(  # noqa: S310
        url, data=request(digest, nonce), headers={"Content-Type": "application/timestamp-query"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=_TIMEOUT_S) as response:  # noqa: S310
            answer = response.read(_LARGEST)
        why = refusal(answer, digest=digest, nonce=nonce)
        if why is None:
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in ((f"{signed.checkpoint.size}.txt", text), (f"{signed.checkpoint.size}.tsr", answer)):
                part = folder / f".{name}.part"
                part.write_bytes(content)
                part.replace(folder / name)
    except OSError as error:  # every fault of urllib is one
        why = str(error)
    return None if why is None else f"{url} did not timestamp the checkpoint: {why}"
