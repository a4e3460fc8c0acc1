"""Builds providers of kind ``http`` and chooses their transport."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payonce.core.model import Declaration
from payonce.providers.http import HttpProvider
from payonce.providers.http_config import configure
from payonce.providers.registry import Wanted
from payonce.providers.settings_values import bad_setting
from payonce.providers.transport import Transport, TransportSettings


def build(table: Mapping[str, Any], wanted: Wanted) -> HttpProvider:
    """The provider of the table. Raises ConfigError."""
    config = configure(
        table,
        operation=wanted.operation,
        batch=wanted.batch,
        environ=wanted.environ,
        mapped=wanted.mapped,
        concurrency=wanted.concurrency,
    )

    def make(settings: TransportSettings) -> Transport:
        return make_transport(settings, name=config.transport_name)

    provider = HttpProvider(config, make_transport=make)
    if wanted.columns is not None:
        provider.check_columns(wanted.columns)
    return provider


def make_transport(settings: TransportSettings, *, name: str = "auto") -> Transport:
    """The transport of this name. ``auto``: the direct one, and aiohttp's where a proxy is in the way (see
    docs/decisions/0003-transport.md). Raises ConfigError where the direct one is asked for and there is a proxy."""
    if name == "direct" and settings.proxy is not None:
        raise bad_setting(
            '[provider] transport = "direct" knows no proxies', hint='leave transport out, or set proxy = "none"'
        )
    if name == "aiohttp" or settings.proxy is not None:
        from payonce.providers.transport_aiohttp import AiohttpTransport

        return AiohttpTransport(settings)
    from payonce.providers.transport_direct import DirectTransport

    return DirectTransport(settings)


def describe() -> Declaration:
    """What an HTTP provider declares before any setting: nothing is promised that the batch file does not promise."""
    return Declaration(
        kind="http",
        operation="any",
        identity="[provider] account, or read with [provider.identity]",
        statement=("any file that a [statement] table describes",),
        notes=(
            "keys: as [provider.key] says (header, format, retention, stores_errors)",
            "look-up: as [provider.lookup] says (path, own_reference, key, lag)",
            "max_execution: 30 s with keys and 60 s without, unless stated",
            "answers: the rules of [[provider.answers]], then 429 not_executed, 401 and 403 stop, 2xx with a "
            "reference executed, unless its body has an error, everything else unresolved; for calls 402 stop",
            "calls: [provider.price] computes what they cost, id_header and stream read long answers, on_unknown says what "
            "becomes of those that no rule decides",
        ),
    )
