"""Settings that all official adapters share, checked and turned into a transport's settings."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
import orjson

from payonce.core.errors import ConfigError
from payonce.core.model import Declaration
from payonce.providers.http_body import JsonBody
from payonce.providers.http_headers import is_loopback
from payonce.providers.official.values import parse_object
from payonce.providers.registry import Wanted
from payonce.providers.secrets import Vault
from payonce.providers.settings_values import Duration, bad_setting
from payonce.providers.templates import Context, Names, check_names
from payonce.providers.transport import TransportSettings
from payonce.providers.transport_proxy import proxy_for


class OfficialTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of every official adapter.

    ``base_url`` stands in for the provider's own address, for test doubles. ``account`` is the account the batch is
    bound to. ``params`` are further parameters of the provider's own call, with the input's columns as placeholders.
    """

    kind: str
    base_url: str | None = None
    account: str | None = None
    params: dict[str, Any] = {}
    timeout: Duration | None = None
    max_execution: Duration | None = None
    ca_file: str | None = None
    proxy: str | None = None
    transport: Literal["auto", "direct", "aiohttp"] = "auto"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a provider is. ``own``: it is the provider's own address, no test double."""

    url: str
    own: bool


def address(table: OfficialTable, vault: Vault, *, official: str) -> Address:
    """The provider's address. Raises ConfigError for one that would send credentials in the clear."""
    place = "[provider] base_url"
    url = vault.address(table.base_url or official, place=place).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise bad_setting(f"{place} is not an address", hint="leave it out: the provider's own address is built in")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise bad_setting(f"{place} would send credentials in the clear", hint="use https://, or leave it out")
    return Address(url, own=url == official)


def connection(
    table: OfficialTable, vault: Vault, where: Address, *, headers: tuple[tuple[str, str], ...], concurrency: int
) -> TransportSettings:
    """How requests go to the provider; ``headers`` hold the credentials."""
    return TransportSettings(
        base_url=where.url,
        headers=headers,
        limit=concurrency + 1,
        ca_file=table.ca_file,
        proxy=proxy_for(where.url, table.proxy, vault=vault),
    )


def declared(known: Mapping[str, Declaration], table: OfficialTable, *, operation: str) -> Declaration:
    """What a provider declares for an operation, with the times that the table states. Raises ConfigError."""
    found = known.get(operation)
    if found is None:
        raise ConfigError(
            f"{table.kind} has no operation {operation!r} here",
            code="unknown_operation",
            hint=f"operation is one of {', '.join(known)}",
        )
    return replace(
        found,
        timeout_us=found.timeout_us if table.timeout is None else int(table.timeout),
        max_execution_us=found.max_execution_us if table.max_execution is None else int(table.max_execution),
    )


def digest(**facts: Any) -> str:
    """SHA-256 over the settings that decide what a call does; callers pass no credentials."""
    return hashlib.sha256(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)).hexdigest()


class Params:
    """Further parameters of a call: a tree with placeholders, filled for every item. None of ``reserved`` is allowed."""

    def __init__(self, tree: dict[str, Any], *, reserved: frozenset[str], wanted: Wanted) -> None:
        taken = sorted(reserved & set(tree))
        if taken:
            raise bad_setting(
                f"[provider.params] sets {taken[0]!r}, which payonce sets itself",
                hint="amounts, targets and references come from [item]",
            )
        self._body = JsonBody(tree, place="[provider.params]", names=Names(wanted.mapped)) if tree else None
        self._batch = wanted.batch
        if self._body is not None and wanted.columns is not None:
            check_names(self._body.templates, columns=wanted.columns, mapped=wanted.mapped)

    def of(self, item: Any, key: str | None) -> dict[str, Any]:
        """The parameters of one item. Raises ConfigError where a placeholder cannot be filled."""
        if self._body is None:
            return {}
        return parse_object(self._body.render(Context(item, key, self._batch)))
