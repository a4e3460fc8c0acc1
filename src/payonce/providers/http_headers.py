"""Headers, credentials and the address of an HTTP provider, checked: nothing secret may end up where it is stored."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import quote, urlsplit

from payonce.providers.secrets import Vault, is_secret_header, is_secret_setting, references
from payonce.providers.settings import HttpTable
from payonce.providers.settings_values import bad_setting
from payonce.providers.templates import Names, Template
from payonce.providers.transport import (
    DEFAULT_ANSWER_LIMIT,
    IDLE_TIMEOUT_S,
    UNSURE_IDLE_TIMEOUT_S,
    TransportSettings,
)
from payonce.providers.transport_proxy import proxy_for

# The answer of a paid call is what was paid for: it may be large, and one cut short is lost.
CALL_ANSWER_LIMIT: Final = 64 * 1024 * 1024
TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIXED_HEADERS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "expect", "te"})


def base_url(settings: HttpTable, vault: Vault) -> str:
    """The provider's address without a trailing slash. Raises ConfigError."""
    place = "[provider] base_url"
    url = vault.address(settings.base_url, place=place).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise bad_setting(f"{place} is not an address", hint='write it like "https://api.example.com/v1"')
    if not parts.netloc.isascii():
        raise bad_setting(f"{place} has letters that host names do not have", hint="write the name in its xn-- form")
    if parts.username is not None:
        raise bad_setting(f"{place} holds a user and password", hint="use basic_auth = {user = ..., password = ...}")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise bad_setting(
            f"{place} is plain http to another machine: what is sent, credentials too, could be read and changed on its way",
            hint="use https://; plain http goes to this machine only (127.0.0.1, localhost), where a local proxy may listen",
        )
    return url


def is_loopback(host: str) -> bool:
    """Whether a host name is this machine itself."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def headers(
    settings: HttpTable, vault: Vault, *, names: Names
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, Template], ...]]:
    """Headers of every request (these may be credentials), and headers with placeholders, which belong to the item."""
    shared: list[tuple[str, str]] = []
    per_item: list[tuple[str, Template]] = []
    stated = [("provider", pair) for pair in settings.headers.items()]
    stated += [("provider.call", pair) for pair in settings.call.headers.items()]
    for table, (name, value) in stated:
        place = f"[{table}] headers.{name}"
        if TOKEN.fullmatch(name) is None or name.lower() in _FIXED_HEADERS:
            raise bad_setting(f"{place} is not a header that can be set", hint="check its name")
        if is_secret_header(name) or references(value):
            if table == "provider.call":
                raise bad_setting(
                    f"{place} would put a credential into the item's request", hint="move it to [provider] headers"
                )
            secret = vault.secret(value, place=place)
            if not secret.isascii() or not secret.isprintable():
                raise bad_setting(f"{place} holds characters a header cannot", hint="printable ASCII only")
            shared.append((name, secret))
            continue
        template = Template(value, place=place, names=names)
        constant = template.constant
        if constant is not None and not (constant.isascii() and constant.isprintable()):
            raise bad_setting(f"{place} holds characters a header cannot", hint="printable ASCII only")
        if constant is not None:
            shared.append((name, constant))
        else:
            per_item.append((name, template))
    if settings.basic_auth is not None:
        shared.append(("Authorization", _basic(settings, vault)))
    return tuple(shared), tuple(per_item)


def _basic(settings: HttpTable, vault: Vault) -> str:
    assert settings.basic_auth is not None
    if any(name.lower() == "authorization" for name in settings.headers):
        raise bad_setting("[provider] has both basic_auth and an Authorization header", hint="take one out")
    user = vault.resolve(settings.basic_auth.user, place="[provider.basic_auth] user", secret=True)
    # Some APIs take their key as the user and an empty password.
    empty = settings.basic_auth.password == "" and references(settings.basic_auth.user)
    password = "" if empty else vault.secret(settings.basic_auth.password, place="[provider.basic_auth] password")
    coded = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    vault.keep(coded, place="[provider.basic_auth]")
    return f"Basic {coded}"


def no_secrets_in_templates(settings: HttpTable) -> None:
    """Requests are stored, so what they hold must not be secret; nor may a body setting be a literal credential."""
    call = settings.call
    stored = {"path": call.path, "json": call.json, "form": call.form, "reference_template": call.reference_template}
    if settings.lookup is not None:
        stored["lookup path"] = settings.lookup.path
    if settings.preflight is not None:
        stored["preflight path"] = settings.preflight.path
    for place, value in stored.items():
        for name, text in _texts(place, value):
            if references(text):
                raise bad_setting(
                    f"[provider.call] {name} refers to an environment variable, but requests are kept in the ledger",
                    hint="credentials go into [provider] headers, query or basic_auth",
                )
            if is_secret_setting(name.rpartition(".")[2]) and "{" not in text:
                raise bad_setting(
                    f"[provider.call] {name} looks like a credential, and requests are kept in the ledger",
                    hint="credentials go into [provider] headers, query or basic_auth",
                )


def _texts(place: str, value: Any) -> list[tuple[str, str]]:
    match value:
        case str():
            return [(place, value)]
        case Mapping():
            return [found for name, entry in value.items() for found in _texts(f"{place}.{name}", entry)]
        case list():
            return [found for n, entry in enumerate(value) for found in _texts(f"{place}[{n}]", entry)]
        case _:
            return []


def transport(
    settings: HttpTable,
    vault: Vault,
    *,
    address: str,
    shared: tuple[tuple[str, str], ...],
    concurrency: int,
    operation: str,
) -> TransportSettings:
    """Where and how requests go. Raises ConfigError."""
    host = urlsplit(address).hostname or ""
    if not settings.verify_tls and not is_loopback(host):
        raise bad_setting("[provider] verify_tls can be switched off for this machine only", hint="use ca_file instead")
    if settings.answer_limit is not None and not 1024 <= settings.answer_limit <= CALL_ANSWER_LIMIT:
        raise bad_setting(
            f"[provider] answer_limit is {settings.answer_limit}", hint="in bytes, from 1024 to 67108864 (64 MiB)"
        )
    usual = CALL_ANSWER_LIMIT if operation == "call" else DEFAULT_ANSWER_LIMIT
    query = "&".join(
        f"{quote(name, safe='')}={quote(_query_value(name, value, vault), safe='')}"
        for name, value in settings.query.items()
    )
    return TransportSettings(
        base_url=address,
        headers=shared,
        query=query,
        # One more for a look-up or an identity read beside the calls.
        limit=concurrency + 1,
        ca_file=settings.ca_file,
        verify_tls=settings.verify_tls,
        proxy=proxy_for(address, settings.proxy, vault=vault),
        answer_limit=settings.answer_limit or usual,
        idle_timeout_s=_idle_timeout_s(settings),
    )


def _idle_timeout_s(settings: HttpTable) -> float:
    if settings.idle_timeout is not None:
        return settings.idle_timeout / 1e6
    return IDLE_TIMEOUT_S if settings.key or settings.lookup else UNSURE_IDLE_TIMEOUT_S


def _query_value(name: str, value: str, vault: Vault) -> str:
    place = f"[provider] query.{name}"
    if is_secret_setting(name) or is_secret_header(name) or references(value):
        return vault.secret(value, place=place)
    return value
