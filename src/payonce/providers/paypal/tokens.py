"""PayPal's access tokens: fetched from client id and secret when needed, kept in memory only, never stored or shown.

A token is fetched before the call it is for, so that a call for which none could be had was surely not sent.
Source: https://developer.paypal.com/api/rest/authentication.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable
from typing import Final

from payonce.core.model import Request
from payonce.providers import answers_values as values
from payonce.providers.secrets import Redactor, Vault
from payonce.providers.transport import Answer, Fault, Transport, always_open

_PATH: Final = "/v1/oauth2/token"
# A token is renewed this long before PayPal says that it ends.
_EARLY_S: Final = 120
_SHORTEST_S: Final = 30


class Refusal(Exception):
    """PayPal does not accept the client id and secret."""


class Tokens:
    """One app's token. ``known`` is told each token, so that it is removed from whatever is kept or shown."""

    def __init__(self, *, client: str, secret: str, vault: Vault, known: Callable[[Redactor], None]) -> None:
        coded = base64.b64encode(f"{client}:{secret}".encode()).decode("ascii")
        vault.keep(coded, place="[provider] client_secret")
        self._basic = coded
        self._vault = vault
        self._known = known
        self._token: str | None = None
        self._until_s = 0.0
        self.ever_accepted = False
        self._lock = asyncio.Lock()

    def heard(self, token: str, *, accepted: bool) -> None:
        """What the provider said to a token: a refused one is not used again."""
        if accepted:
            self.ever_accepted = True
        elif self._token == token:
            self._token = None

    async def get(self, transport: Transport, *, timeout_us: int) -> str | Fault:
        """A token that holds; or why none could be had. Raises Refusal for credentials that are not accepted."""
        async with self._lock:
            if self._token is None or time.monotonic() >= self._until_s:
                fetched = await self._fetch(transport, timeout_us=timeout_us)
                if isinstance(fetched, Fault):
                    return fetched
                self._token, self._until_s = fetched
            return self._token

    async def _fetch(self, transport: Transport, *, timeout_us: int) -> tuple[str, float] | Fault:
        asked_s = time.monotonic()
        headers = (
            ("Authorization", f"Basic {self._basic}"),
            ("Content-Type", "application/x-www-form-urlencoded"),
            ("Accept", "application/json"),
        )
        request = Request("POST", _PATH, b"grant_type=client_credentials", headers)
        answer = await transport.send(request, timeout_us=timeout_us, gate=always_open)
        if isinstance(answer, Fault):
            # Nothing of the call itself was sent, whatever became of the token's request.
            return Fault("no_token", f"no access token: {answer.message}", sent=False, load=True)
        if answer.status in (400, 401, 403):
            raise Refusal
        token, lasts_s = _read(answer)
        if token is None:
            return Fault("no_token", f"no access token: status {answer.status}", sent=False, load=True)
        self._vault.keep(token, place="PayPal's access token")
        self._known(self._vault.redactor())
        return token, asked_s + max(lasts_s - _EARLY_S, _SHORTEST_S)


def _read(answer: Answer) -> tuple[str | None, int]:
    if answer.status != 200:
        return None, 0
    try:
        tree = values.parse(answer.body)
    except ValueError:
        return None, 0
    token = tree.get("access_token") if isinstance(tree, dict) else None
    lasts = tree.get("expires_in") if isinstance(tree, dict) else None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        return None, 0
    return token, lasts if isinstance(lasts, int) else _EARLY_S
