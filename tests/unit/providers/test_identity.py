"""Whose credentials they are."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from payonce.core.errors import ConfigError
from payonce.providers.protocol import Identity
from payonce.providers.transport import Answer, Fault
from tests.unit.providers.httpkit import REFUND, Bench, answer

READ = {"path": "/v1/account", "account": "id", "mode": "livemode"}
PLAIN = {name: value for name, value in REFUND.items() if name != "account"}


def identify(table: dict[str, Any], *replies: Answer | Fault) -> Identity:
    return asyncio.run(Bench(table, *replies).provider.identify())


def test_as_configured_without_a_read() -> None:
    """No call is made."""
    assert identify(REFUND) == Identity("acme-live", None)
    assert identify({**REFUND, "mode": "test"}) == Identity("acme-live", "test")
    assert identify(PLAIN) == Identity(None, None)


def test_as_the_api_says() -> None:
    """A flag that is true for live, or a word."""
    body = '{"id":"acct_1","livemode":true}'
    assert identify({**PLAIN, "identity": READ}, answer(200, body)) == Identity("acct_1", "live")
    assert identify({**PLAIN, "identity": READ}, answer(200, body.replace("true", "false"))) == Identity(
        "acct_1", "test"
    )
    assert identify({**PLAIN, "identity": READ}, answer(200, '{"id":7,"livemode":"sandbox"}')) == Identity(
        "7", "sandbox"
    )


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (answer(401), "bad_credentials"),
        (answer(403), "bad_credentials"),
        (answer(500), "identity_unreadable"),
        (answer(200, b""), "identity_unreadable"),
        (answer(200, b"{}"), "identity_unreadable"),
        (Fault("timeout", "late"), "identity_unreadable"),
    ],
)
def test_what_cannot_be_read_stops_before_anything_is_sent(reply: Answer | Fault, code: str) -> None:
    """With a code of its own."""
    with pytest.raises(ConfigError) as caught:
        identify({**PLAIN, "identity": READ}, reply)
    assert caught.value.code == code


@pytest.mark.parametrize("stated", [{"account": "acct_2"}, {"account": "acct_1", "mode": "live"}])
def test_another_account_or_mode_than_configured(stated: dict[str, str]) -> None:
    """The credentials of another account, or of test instead of live."""
    with pytest.raises(ConfigError) as caught:
        identify({**PLAIN, **stated, "identity": READ}, answer(200, '{"id":"acct_1","livemode":false}'))
    assert caught.value.code == "wrong_account"
