"""Credentials: from the environment only, and nowhere to be found afterwards."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payonce.core.errors import ConfigError
from payonce.providers.secrets import Redactor, Vault, is_secret_header
from tests.unit.providers.httpkit import KEY, REFUND, TOKEN, Bench, answer, item

SECRETS = {
    "API_TOKEN": TOKEN,
    "USER_NAME": "merchant-user-1",
    "PASSWORD": 'pa"ss/w+ord=é',
    "QUERY_KEY": "q/u+e r&y=key",
    "PROXY_PASS": "proxy-secret",
}
FULL: dict[str, Any] = {
    **REFUND,
    "headers": {"X-Api-Key": "${API_TOKEN}", "X-Version": "2026-01-01"},
    "basic_auth": {"user": "${USER_NAME}", "password": "${PASSWORD}"},
    "query": {"apikey": "${QUERY_KEY}", "v": "2"},
    "proxy": "http://me:${PROXY_PASS}@127.0.0.1:3128",
}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr("tests.unit.providers.httpkit.ENVIRON", SECRETS)
    leak = json.dumps({"id": None, "message": " ".join(SECRETS.values())})
    return Bench(FULL, answer(400, leak))


def test_no_secret_is_in_anything_that_is_kept_or_shown(bench: Bench) -> None:
    """Request, digest, declaration, reply and every repr; the wire is the only place that has them."""
    request = bench.provider.prepare(item(), key=KEY, step=0)
    kept = [request, bench.provider.declaration, bench.provider.provider_digest, bench.call(), bench.config]
    kept += [bench.config.transport, bench.config.redactor]
    for text in map(repr, kept):
        for secret in SECRETS.values():
            assert secret not in text
    wire = repr(bench.config.transport.headers) + bench.config.transport.query
    assert TOKEN in wire
    assert base64.b64encode(f"{SECRETS['USER_NAME']}:{SECRETS['PASSWORD']}".encode()).decode() in wire


def test_the_digest_does_not_change_with_the_credentials() -> None:
    """A rotated key is the same batch; another version header is not."""
    first = Bench(REFUND).provider.provider_digest
    assert Bench({**REFUND, "headers": {"Authorization": "Bearer ${API_TOKEN}x"}}).provider.provider_digest == first
    assert Bench({**REFUND, "headers": {**REFUND["headers"], "X-Version": "1"}}).provider.provider_digest != first
    assert Bench({**REFUND, "base_url": "https://api.example.org"}).provider.provider_digest != first
    assert Bench({**REFUND, "timeout": "20s", "max_execution": "1h"}).provider.provider_digest == first


@pytest.mark.parametrize(
    "change",
    [
        {"headers": {"Authorization": "Bearer sk_live_123456"}},
        {"headers": {"X-API-Key": "abcdef123456"}},
        {"headers": {"X-Auth-Token": "abcdef123456"}},
        {"headers": {"Cookie": "session=1"}},
        {"query": {"api_key": "abcdef"}},
        {"query": {"access_token": "abcdef"}},
        {"basic_auth": {"user": "me", "password": "pass-in-file"}, "headers": {}},
        {"proxy": "http://me:secret@proxy.example.com"},
    ],
)
def test_a_literal_secret_is_refused_and_not_shown(change: dict[str, Any]) -> None:
    """The message names the setting, never the value."""
    with pytest.raises(ConfigError) as caught:
        Bench({**REFUND, **change})
    assert caught.value.code == "literal_secret"
    for value in ("sk_live_123456", "abcdef", "session=1", "pass-in-file", "me:secret"):
        assert value not in str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        {"path": "/v1/${API_TOKEN}"},
        {"json": {"a": {"b": ["${API_TOKEN}"]}}},
        {"json": {"api_key": "abcdef123"}},
        {"headers": {"X-Api-Key": "${API_TOKEN}"}},
        {"headers": {"X-Ref": "${API_TOKEN}"}},
    ],
)
def test_a_secret_cannot_be_put_into_a_request(call: dict[str, Any]) -> None:
    """Requests are kept in the ledger."""
    with pytest.raises(ConfigError, match=r"ledger|item's request"):
        Bench({**REFUND, "call": {**REFUND["call"], **call}})


def test_basic_authentication() -> None:
    """Also with the key as the user and nothing behind it; never beside an Authorization header."""
    plain = {**REFUND, "headers": {}}
    bench = Bench({**plain, "basic_auth": {"user": "${API_TOKEN}", "password": ""}})
    sent = dict(bench.config.transport.headers)["Authorization"]
    assert base64.b64decode(sent.removeprefix("Basic ")) == f"{TOKEN}:".encode()
    assert sent.removeprefix("Basic ") not in bench.config.redactor.text(sent)
    with pytest.raises(ConfigError, match="both"):
        Bench({**REFUND, "basic_auth": {"user": "${API_TOKEN}", "password": ""}})


def test_a_missing_variable_is_named() -> None:
    """And the setting that needs it."""
    with pytest.raises(ConfigError) as caught:
        Bench({**REFUND, "headers": {"Authorization": "Bearer ${NOT_SET_ANYWHERE}"}})
    assert caught.value.code == "missing_variable"
    assert "NOT_SET_ANYWHERE" in caught.value.message
    assert "headers.Authorization" in caught.value.message


@pytest.mark.parametrize("value", ["abc", "abcdef\n", " abcdef", "abc\tdef"])
def test_a_variable_that_cannot_be_a_credential_is_refused(value: str) -> None:
    """Usually a file with a newline at its end; the value is not shown."""
    with pytest.raises(ConfigError) as caught:
        Vault({"X": value}).secret("${X}", place="p")
    assert caught.value.code == "bad_secret"
    assert value not in str(caught.value)


def test_nothing_goes_out_in_the_clear() -> None:
    """http:// only to this machine, with credentials or without."""
    for headers in (REFUND.get("headers", {}), {}):
        with pytest.raises(ConfigError, match="plain http to another machine"):
            Bench({**REFUND, "base_url": "http://api.example.com", "headers": headers})
    Bench({**REFUND, "base_url": "http://127.0.0.1:8080"})


@given(st.text('abcXYZ019é"\\/+=%& ', min_size=6, max_size=20), st.text("abc{}: ", max_size=10))
def test_the_redactor_finds_every_form(secret: str, around: str) -> None:
    """Plain, percent-encoded, inside JSON; in texts and in bytes."""
    redactor = Redactor([secret])
    for form in (secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret, ensure_ascii=False)[1:-1]):
        shown = f"{around}\n{form}\n{around}"
        assert form not in redactor.text(shown)
        assert form.encode() not in redactor.body(shown.encode())


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("Authorization", True),
        ("Proxy-Authorization", True),
        ("X-API-Key", True),
        ("apikey", True),
        ("X-Auth-Token", True),
        ("Cookie", True),
        ("X-Signature", True),
        ("Idempotency-Key", False),
        ("X-Idempotency-Key", False),
        ("Content-Type", False),
        ("Stripe-Version", False),
        ("X-Request-Id", False),
        ("Author", False),
    ],
)
def test_which_headers_are_secret(name: str, secret: bool) -> None:
    """By custom."""
    assert is_secret_header(name) is secret
