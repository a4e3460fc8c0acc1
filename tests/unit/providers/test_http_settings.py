"""Settings of kind http: exactly the interface's names, and errors that say what is wrong and what is allowed."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from payonce.core.durations import duration_us
from payonce.core.errors import ConfigError
from payonce.core.keys import KeyFormat
from payonce.core.model import KeyDeclaration, LookupDeclaration, Request
from tests.unit.providers.httpkit import KEY, LOOKUP, REFUND, Bench, item, with_call

INTERFACE = """
kind = "http"
base_url = "https://api.example.com"
account = "acme-live"
headers = {Authorization = "Bearer ${API_TOKEN}"}
timeout = "10s"
max_execution = "30s"
[call]
method = "POST"
path = "/v1/refunds"
json = {charge = "{charge_id}", amount = "{amount_minor}", currency = "{currency}"}
reference = "id"
billed = "amount"
keep = {tokens = "usage.tokens"}
[key]
header = "Idempotency-Key"
format = "hex"
retention = "24h"
stores_errors = true
replay_header = "Idempotent-Replayed"
[lookup]
path = "/v1/refunds?charge={charge_id}"
found = "data"
reference = "id"
amount = "amount"
amount_unit = "minor"
time = "created"
own_reference = "metadata.ref"
key = "metadata.payonce_key"
lag = "5s"
[[answers]]
status = 400
when = "error.code == 'charge_already_refunded'"
outcome = "already_done"
"""


def test_the_interfaces_example_works_as_it_is_written() -> None:
    """Every setting of the page, and what it declares."""
    bench = Bench(tomllib.loads(INTERFACE))
    declaration = bench.provider.declaration
    assert declaration.key == KeyDeclaration("header Idempotency-Key", KeyFormat("hex"), 86_400_000_000, True)
    assert declaration.lookup == LookupDeclaration("/v1/refunds", 5_000_000, own_reference=True, key=True)
    assert (declaration.timeout_us, declaration.max_execution_us) == (10_000_000, 30_000_000)
    assert bench.provider.prepare(item(), key=KEY, step=0) == Request(
        "POST",
        "/v1/refunds",
        b'{"charge":"ch_1","amount":1250,"currency":"USD"}',
        (("Content-Type", "application/json"), ("Idempotency-Key", KEY)),
    )
    bench.provider.check_columns(["charge_id"])
    with pytest.raises(ConfigError, match="charge_id"):
        bench.provider.check_columns(["charge"])


def test_defaults() -> None:
    """Longest execution: 30 s with keys, 60 s without; ten seconds a call."""
    without = {name: value for name, value in REFUND.items() if name != "key"}
    assert Bench(REFUND).provider.declaration.max_execution_us == 30_000_000
    assert Bench(without).provider.declaration.max_execution_us == 60_000_000
    assert Bench(without).provider.declaration.timeout_us == 10_000_000
    assert Bench(without).provider.declaration.key is None


def test_connections_are_kept_for_less_time_where_nothing_can_be_resolved() -> None:
    """A dropped connection then costs an item its certainty."""
    without = {name: value for name, value in REFUND.items() if name != "key"}
    assert Bench(REFUND).config.transport.idle_timeout_s == 4.0
    assert Bench(without).config.transport.idle_timeout_s == 1.0
    assert Bench({**without, "lookup": LOOKUP}).config.transport.idle_timeout_s == 4.0
    assert Bench({**without, "idle_timeout": "500ms"}).config.transport.idle_timeout_s == 0.5


def test_a_key_in_the_body() -> None:
    """Without a header, through {key}."""
    table = {**with_call(json={"k": "{key}"}), "key": {"retention": "forever", "format": "uuid"}}
    bench = Bench(table)
    assert bench.provider.declaration.key == KeyDeclaration("the call's own fields", KeyFormat("uuid"), None, False)
    request = bench.provider.prepare(item(), key=KEY, step=0)
    assert request.body == b'{"k":"%s"}' % KEY.encode()
    assert all(name != "Idempotency-Key" for name, _ in request.headers)


def test_headers_with_placeholders_belong_to_the_item() -> None:
    """They are kept with the request; the others are added on the way out."""
    table = {
        **with_call(headers={"X-Ref": "ref-{id}"}),
        "headers": {**REFUND["headers"], "X-Batch": "{batch}", "V": "1"},
    }
    bench = Bench(table)
    headers = dict(bench.provider.prepare(item(), key=KEY, step=0).headers)
    assert headers["X-Ref"] == "ref-r-1"
    assert headers["X-Batch"] == "b-1"
    assert "V" not in headers
    assert ("V", "1") in bench.config.transport.headers


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"lookups": {}}, "lookup"),
        ({"call": {**REFUND["call"], "pathh": "/x"}}, "path"),
        ({"lookup": {**LOOKUP, "lagg": "5s"}}, "lag"),
        ({"lookup": {"path": "/x"}}, "reference"),
        ({"lookup": {**LOOKUP, "amount_unit": "cents"}}, "amount_unit"),
        ({"timeout": 10}, "timeout"),
        ({"timeout": "10"}, "timeout"),
        ({"key": {"header": "K", "retention": "a day"}}, "retention"),
        ({"key": {"header": "K", "retention": "24h", "format": "base64"}}, "format"),
        ({"key": {"header": "K", "retention": "24h", "max_length": 10}}, "max_length"),
        ({"key": {"retention": "24h"}}, "key"),
        ({"key": {"retention": "24h"}, "lookup": {**LOOKUP, "path": "/v1/x?key={key}"}}, "key"),
        ({"key": {"header": "K: x", "retention": "24h"}}, "header"),
        ({"base_url": "api.example.com"}, "base_url"),
        ({"base_url": "ftp://api.example.com"}, "base_url"),
        ({"base_url": "https://api.example.com?x=1"}, "base_url"),
        ({"base_url": "https://bücher.example"}, "base_url"),
        ({"headers": {"Host": "x"}}, "Host"),
        ({"headers": {"Bad Name": "x"}}, "Bad Name"),
        ({"headers": {"X": "a\nb"}}, "X"),
        ({"verify_tls": False}, "verify_tls"),
        ({"answer_limit": 10}, "answer_limit"),
        ({"mode": "prod"}, "mode"),
        ({"proxy": "socks5://x"}, "proxy"),
        ({"query": {"a": 1}}, "query"),
        ({"call": {"path": "/x", "json": {}}}, "reference"),
        ({"call": {**REFUND["call"], "path": "x"}}, "path"),
        ({"call": {**REFUND["call"], "path": "/x y"}}, "path"),
        ({"call": {**REFUND["call"], "path": "/x#y"}}, "path"),
        ({"call": {**REFUND["call"], "form": {}}}, "form"),
        ({"call": {**REFUND["call"], "method": "HEAD"}}, "method"),
        ({"call": {**REFUND["call"], "reference": "a["}}, "reference"),
        ({"call": {**REFUND["call"], "status_failed": ["x"]}}, "status"),
        ({"call": {**REFUND["call"], "json": {"a": "{"}}}, "json"),
        ({"lookup": {**LOOKUP, "more": "has_more"}}, "next"),
        ({"lookup": {**LOOKUP, "max_pages": 0}}, "max_pages"),
    ],
)
def test_a_wrong_setting_is_named(change: dict[str, Any], named: str) -> None:
    """The error says where and what; there is always a next step."""
    with pytest.raises(ConfigError) as caught:
        Bench({**REFUND, **change})
    assert named in caught.value.message + caught.value.hint
    assert caught.value.hint
    assert caught.value.code in ("bad_setting", "bad_key_format", "key_too_short", "bad_template", "unknown_setting")


def test_a_misspelt_setting_shows_the_right_one() -> None:
    """Which table, and what was probably meant."""
    with pytest.raises(ConfigError) as caught:
        Bench({**REFUND, "lookup": {**LOOKUP, "own_refrence": "x"}})
    assert "[provider.lookup]" in caught.value.message
    assert "own_reference" in caught.value.hint


def test_the_key_is_needed_where_it_is_used() -> None:
    """{key} without a [provider.key] would send an empty promise."""
    table = {name: value for name, value in with_call(json={"k": "{key}"}).items() if name != "key"}
    with pytest.raises(ConfigError, match=r"\[provider\.key\]"):
        Bench(table)


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("500ms", 500_000),
        ("10s", 10_000_000),
        ("1.5s", 1_500_000),
        ("5m", 300_000_000),
        ("24h", 86_400_000_000),
        ("45d", 3_888_000_000_000),
        ("7 us", 7),
        ("0s", 0),
    ],
)
def test_durations(text: str, us: int) -> None:
    """Exact."""
    assert duration_us(text) == us


@pytest.mark.parametrize("text", ["", "10", "s", "-1s", "1e3s", "1.0000001s", "0.5us", "10 sec", "١s", "1h30m"])
def test_what_is_no_duration(text: str) -> None:
    """A unit is never guessed."""
    with pytest.raises(ValueError):
        duration_us(text)


@pytest.mark.parametrize(
    ("environ", "setting", "used"),
    [
        ({"HTTPS_PROXY": "http://proxy.example.com:3128"}, None, True),
        ({"https_proxy": "proxy.example.com:3128"}, None, True),
        ({"HTTPS_PROXY": "http://proxy.example.com:3128", "NO_PROXY": "api.example.com"}, None, False),
        ({"HTTPS_PROXY": "http://proxy.example.com:3128"}, "none", False),
        ({"HTTP_PROXY": "http://proxy.example.com:3128"}, None, False),
        ({}, "http://proxy.example.com:3128", True),
        ({}, None, False),
    ],
)
def test_proxies(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], setting: str | None, used: bool) -> None:
    """The setting's, else the environment's for this scheme and host."""
    for name in (
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
        "NO_PROXY",
        "no_proxy",
        "ALL_PROXY",
        "all_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    table = REFUND if setting is None else {**REFUND, "proxy": setting}
    assert Bench(table).config.transport.proxy == ("http://proxy.example.com:3128" if used else None)
