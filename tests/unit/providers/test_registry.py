"""Kinds of providers: built from their tables, described, and the simulator in both of its forms."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from payonce.core.errors import ConfigError
from payonce.core.model import Item
from payonce.core.money import Money
from payonce.core.outcome import AlreadyDone, Executed, Found, NotExecuted, Outcome, Refused, Stop, Unresolved
from payonce.providers import registry
from payonce.providers.http import HttpProvider
from payonce.providers.protocol import Identity, Provider
from payonce.providers.python import PythonProvider
from payonce.providers.registry_http import make_transport
from payonce.providers.simulator import parse
from payonce.providers.simulator.server import start
from payonce.providers.transport import TransportSettings
from payonce.providers.transport_aiohttp import AiohttpTransport
from payonce.providers.transport_direct import DirectTransport
from tests.unit.providers.httpkit import ENVIRON, KEY, REFUND


def build(kind: str, table: dict[str, Any], **wanted: Any) -> Provider:
    usual: dict[str, Any] = {"operation": "refund", "batch": "b-1", "environ": ENVIRON}
    return registry.build(kind, {"kind": kind, **table}, **{**usual, **wanted})


def test_every_kind_is_described() -> None:
    """For ``payonce providers``."""
    found = {declaration.kind: declaration for declaration in registry.declarations()}
    assert set(found) == set(registry.KINDS)
    assert found["simulator"].key is not None
    assert found["http"].key is None


def test_an_unknown_kind_shows_those_that_exist() -> None:
    """With the nearest one."""
    with pytest.raises(ConfigError) as caught:
        build("htpp", {})
    assert caught.value.code == "unknown_provider"
    assert "http" in caught.value.hint


def test_columns_are_checked_when_the_provider_is_built() -> None:
    """Before anything is sealed."""
    assert isinstance(build("http", REFUND, columns=["charge_id"]), HttpProvider)
    assert isinstance(build("http", REFUND, columns=["x"], mapped={"charge_id": "id"}), HttpProvider)
    with pytest.raises(ConfigError) as caught:
        build("http", REFUND, columns=["charge"])
    assert caught.value.code == "unknown_placeholder"


def test_a_python_function_by_name(tmp_path: Path) -> None:
    """Imported from the batch file's folder."""
    (tmp_path / "my_refunds_x1.py").write_text("async def refund(call): ...\n")
    assert isinstance(build("python", {"function": "my_refunds_x1:refund"}, base=str(tmp_path)), PythonProvider)
    assert isinstance(build("python", {}, function=lambda call: None), PythonProvider)
    for name in ("my_refunds_x1:nope", "no_such_module_x1:refund", "refund", "", "json:__name__"):
        with pytest.raises(ConfigError):
            build("python", {"function": name}, base=str(tmp_path))


def test_which_transport_is_chosen() -> None:
    """The direct one, but for proxies."""
    plain = TransportSettings("https://api.example.com")
    proxied = TransportSettings("https://api.example.com", proxy="http://127.0.0.1:1")
    assert isinstance(make_transport(plain), DirectTransport)
    assert isinstance(make_transport(plain, name="aiohttp"), AiohttpTransport)
    assert isinstance(make_transport(proxied), AiohttpTransport)
    with pytest.raises(ConfigError):
        make_transport(proxied, name="direct")


def test_the_registry_imports_no_adapter() -> None:
    """So that a command that needs none starts fast; and the direct transport needs no aiohttp."""
    code = (
        "import sys; import payonce.providers.registry as r; "
        "assert not {'aiohttp', 'jmespath', 'httptools', 'msgspec'} & set(sys.modules), sys.modules; "
        "import payonce.providers.registry_http as h; from payonce.providers.transport import TransportSettings; "
        "h.make_transport(TransportSettings('http://x')); assert 'aiohttp' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# The simulator

ITEM = Item(1, "r-1", "ch_1", Money("12.50", "USD"), {})


async def once(provider: Provider, item: Item = ITEM) -> Outcome:
    await provider.open()
    try:
        key = KEY if provider.declaration.key else None
        request = provider.prepare(item, key=key, step=0)
        reply = await provider.send(request, item, key=key, timeout_us=1_000_000, gate=lambda: True)
        return reply.outcome
    finally:
        await provider.close()


@pytest.mark.parametrize("operation", ["refund", "payout", "invoice", "call"])
def test_each_operation_of_the_simulator(operation: str, tmp_path: Path) -> None:
    """Over HTTP and in process: executed, billed as asked, found again, whose account it is."""
    mapped = {"amount": "amount"}
    # A paid call is priced in millionths of a dollar.
    item = replace(ITEM, money=Money("12.50", "USDC" if operation == "call" else "USD"))

    async def main() -> None:
        server = await start(parse({}))
        for table in ({"url": server.url}, {"state": "sim.jsonl"}):
            provider = build("simulator", table, operation=operation, base=str(tmp_path), mapped=mapped)
            outcome = await once(provider, item)
            assert isinstance(outcome, Executed), outcome
            assert outcome.billed == item.money
            await provider.open()
            found = await provider.lookup(item, key=KEY, step=0, timeout_us=1_000_000)
            assert isinstance(found, Found), found
            assert [e.reference for e in found.executions] == [outcome.reference]
            assert found.executions[0].own_reference == "r-1"
            assert found.executions[0].money == item.money
            assert await provider.identify() == Identity("acct_sim", "test")
            await provider.close()
        await server.close()

    asyncio.run(main())


def test_a_paid_call_without_an_amount(tmp_path: Path) -> None:
    """The provider sets the price, and the answer is the product."""
    provider = build("simulator", {"state": "sim.jsonl"}, operation="call", base=str(tmp_path))
    outcome = asyncio.run(once(provider, Item(1, "r-1", "model-1", None, {})))
    assert isinstance(outcome, Executed)
    assert outcome.billed is not None
    assert outcome.billed.currency == "USDC"
    assert outcome.output["usage"]["tokens"] > 0


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [
        ("unreachable", NotExecuted),
        ("reset_before", Unresolved),
        ("reset_after", Unresolved),
        ("silent_after", Unresolved),
        ("cut_after", Unresolved),
        ("garbage", Unresolved),
        ("huge", Unresolved),
        ("odd_success", Unresolved),
        ("accepted_202", Unresolved),
        ("error_500_after", Unresolved),
        ("rate_limited", NotExecuted),
        ("lock_timeout", NotExecuted),
        ("stop_401", Stop),
        ("refuse", Refused),
        ("already_refunded", AlreadyDone),
        ("other_amount", Executed),
    ],
)
@pytest.mark.parametrize("where", ["url", "state"])
def test_the_simulators_faults_have_the_right_class(
    fault: str, wanted: type[Outcome], where: str, tmp_path: Path
) -> None:
    """The same over HTTP and in process."""
    behaviours = {"script": {"r-1": [fault]}}

    async def main() -> None:
        server = await start(parse(behaviours))
        table = {"url": server.url} if where == "url" else {"state": "sim.jsonl", **behaviours}
        outcome = await once(build("simulator", table, base=str(tmp_path)))
        await server.close()
        if fault == "unreachable" and where == "url":
            assert isinstance(outcome, Unresolved)  # a real connection cannot promise that nothing left
        else:
            assert isinstance(outcome, wanted), outcome

    asyncio.run(main())


def test_the_adapter_may_do_without_keys_and_look_ups(tmp_path: Path) -> None:
    """So that every line of the guarantees can be tried out."""
    for keys in (True, False):
        for lookup in (True, False):
            table = {"state": "s.jsonl", "keys": keys, "lookup": lookup}
            declaration = build("simulator", table, base=str(tmp_path)).declaration
            assert (declaration.key is not None, declaration.lookup is not None) == (keys, lookup)
    ignored = build("simulator", {"state": "s.jsonl", "keys": "ignored"}, base=str(tmp_path)).declaration
    assert ignored.key is None


def test_promises_of_the_simulator_follow_its_behaviours(tmp_path: Path) -> None:
    """What it is told to do is what is declared."""
    table = {
        "state": "s.jsonl",
        "key_retention": "1h",
        "stores_errors": False,
        "lookup_lag": "2s",
        "key_max_length": 40,
    }
    declaration = build("simulator", table, base=str(tmp_path)).declaration
    assert declaration.key is not None and declaration.lookup is not None
    assert (declaration.key.retention_us, declaration.key.stores_errors) == (3_600_000_000, False)
    assert declaration.key.format.length == 40
    assert declaration.lookup.lag_us == 2_000_000


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"url": "http://127.0.0.1:1", "state": "s.jsonl"},
        {"url": "http://127.0.0.1:1", "faults": []},
        {"state": "s.jsonl", "no_such_behaviour": 1},
        {"state": "s.jsonl", "api_key": "literal-key"},
    ],
)
def test_settings_of_the_simulator_that_make_no_sense(table: dict[str, Any], tmp_path: Path) -> None:
    """Named."""
    with pytest.raises(ConfigError):
        build("simulator", table, base=str(tmp_path))
