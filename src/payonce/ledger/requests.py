"""The digest of a request: how the trail names the exact bytes that went out without keeping them."""

from __future__ import annotations

import hashlib

from payonce.core.model import Request


def request_digest(request: Request) -> bytes:
    """SHA-256 over method, NUL, path, NUL, body. Headers stay out: they follow from the key and the body."""
    return hashlib.sha256(f"{request.method}\0{request.path}\0".encode() + request.body).digest()
