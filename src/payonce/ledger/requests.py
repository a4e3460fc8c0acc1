"""The digest of a request: how the trail names the exact bytes that went out without keeping them."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

from payonce.core.model import Request


def request_digest(request: Request) -> bytes:
    """SHA-256 over method, NUL, path, NUL, body. Headers stay out: they follow from the key and the body."""
    started = _started(request.method, request.path).copy()
    started.update(request.body)
    digest: bytes = started.digest()
    return digest


@lru_cache(maxsize=8)  # most requests of a run differ in their body alone
def _started(method: str, path: str) -> Any:
    return hashlib.sha256(f"{method}\0{path}\0".encode())
