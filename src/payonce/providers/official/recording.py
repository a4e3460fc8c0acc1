"""How an SDK's call becomes a Request: the SDK is given an HTTP client that raises what it was handed.

So the parameters' names, their encoding, the path and the API version are the SDK's own, while the bytes are kept in
the ledger before anything is sent and go out, first and again, through payonce's transport.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from payonce.core.model import Request

# Headers that belong to the item's call. Everything else an SDK adds (credentials, agents, telemetry) is left behind.
KEPT_HEADERS: Final = frozenset(
    {
        "content-type",
        "accept",
        "prefer",
        "idempotency-key",
        "paypal-request-id",
        "stripe-version",
        "stripe-account",
    }
)


class Recorded(Exception):
    """Raised in place of sending: the call as the SDK shaped it. ``url`` is absolute."""

    def __init__(self, *, method: str, url: str, headers: Mapping[str, Any], body: bytes | str | None) -> None:
        super().__init__("recorded")
        self.method = method.upper()
        self.url = url
        self.headers = {str(name): str(value) for name, value in headers.items() if value is not None}
        self.body = body.encode("utf-8") if isinstance(body, str) else (body or b"")


def record(call: Callable[[], object], *, base_url: str) -> Request:
    """The request that an SDK's call would send, without credentials. Its path is relative to ``base_url``."""
    seen = _recorded(call)
    assert seen.url.startswith(f"{base_url}/"), "the SDK addresses another server than it was told to"
    headers = sorted((name, value) for name, value in seen.headers.items() if name.lower() in KEPT_HEADERS)
    return Request(seen.method, seen.url[len(base_url) :], seen.body, tuple(headers))


def _recorded(call: Callable[[], object]) -> Recorded:
    try:
        call()
    except Recorded as seen:
        return seen
    raise AssertionError("the SDK sent its call without its HTTP client")
