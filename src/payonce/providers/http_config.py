"""Turns ``[provider]`` of kind ``http`` into everything an HTTP provider needs, checked and compiled.

All that can be wrong in the settings is found here, before anything is sealed or sent.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from payonce.core.durations import duration_us
from payonce.core.keys import KeyFormat
from payonce.core.model import Declaration, KeyDeclaration
from payonce.providers.answers import Classifier
from payonce.providers.answers_executed import ExecutionReader
from payonce.providers.answers_paths import optional
from payonce.providers.http_body import Body, FormBody, JsonBody, NoBody
from payonce.providers.http_headers import TOKEN, base_url, headers, no_secrets_in_templates, transport
from payonce.providers.http_preflight import HttpPreflight
from payonce.providers.http_price import Price
from payonce.providers.http_stream import Stream
from payonce.providers.lookups import HttpLookup
from payonce.providers.secrets import Redactor, Vault, is_secret_header, references
from payonce.providers.settings import CallTable, HttpTable, IdentityTable, KeyTable
from payonce.providers.settings_values import bad_setting, read
from payonce.providers.templates import Names, Template
from payonce.providers.transport import TransportSettings

MAX_EXECUTION_WITH_KEYS_US: Final = 30_000_000
MAX_EXECUTION_US: Final = 60_000_000


@dataclass(frozen=True, slots=True)
class CallShape:
    """What makes an item's request. ``headers`` are filled for every item; ``key_header`` carries the key, if any."""

    method: str
    path: Template
    body: Body
    headers: tuple[tuple[str, Template], ...]
    key_header: str | None

    @property
    def templates(self) -> tuple[Template, ...]:
        """All of its templates."""
        return (self.path, *self.body.templates, *(template for _, template in self.headers))


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """A checked configuration. ``mapped`` are columns that [item] maps to built-in placeholders."""

    declaration: Declaration
    digest: str
    batch: str
    call: CallShape
    executions: ExecutionReader
    classifier: Classifier
    lookup: HttpLookup | None
    preflight: HttpPreflight | None
    price: Price | None
    identity: IdentityTable | None
    account: str | None
    mode: str | None
    transport: TransportSettings
    transport_name: str
    redactor: Redactor
    mapped: Mapping[str, str] = field(default_factory=dict)
    request_id_headers: tuple[str, ...] = ()
    id_header: str | None = None

    @property
    def keeps_ids(self) -> bool:
        """Whether the provider's id of a call is worth keeping: a header brings it, or the look-up asks by it."""
        asked = self.lookup.templates if self.lookup is not None else ()
        return self.id_header is not None or any("answer_id" in template.names for template in asked)

    @property
    def templates(self) -> tuple[Template, ...]:
        """Every template there is, for checking their placeholders."""
        readers = (self.executions, self.lookup, self.preflight, self.price)
        return (*self.call.templates, *(found for reader in readers if reader for found in reader.templates))


def configure(
    table: Mapping[str, Any],
    *,
    operation: str,
    batch: str,
    environ: Mapping[str, str],
    mapped: Mapping[str, str],
    concurrency: int,
) -> HttpConfig:
    """The configuration of ``[provider]``. Raises ConfigError naming the setting (and never a credential)."""
    settings = read(table, HttpTable)
    vault = Vault(environ)
    names = Names(mapped)
    no_secrets_in_templates(settings)
    address = base_url(settings, vault)
    shared, per_item = headers(settings, vault, names=names)
    returns_output = operation == "call"
    price = Price(settings.price, names=names) if settings.price is not None else None
    executions = ExecutionReader(settings.call, names=names, returns_output=returns_output, price=price)
    lookup = None
    if settings.lookup is not None:
        lookup = HttpLookup(
            settings.lookup,
            base_url=address,
            names=names,
            batch=batch,
            returns_output=returns_output,
            executions=executions,
        )
    config = HttpConfig(
        declaration=_declaration(settings, operation=operation, lookup=lookup, executions=executions),
        digest=_digest(settings, address),
        batch=batch,
        call=_call(settings, names, per_item=per_item),
        executions=executions,
        classifier=Classifier(
            settings.answers,
            key=settings.key,
            executions=executions,
            stream=_stream(settings.call),
            operation=operation,
        ),
        lookup=lookup,
        price=price,
        preflight=HttpPreflight(settings.preflight, names=names) if settings.preflight else None,
        identity=settings.identity,
        account=vault.resolve(settings.account, place="[provider] account", secret=False) if settings.account else None,
        mode=settings.mode,
        transport=transport(
            settings, vault, address=address, shared=shared, concurrency=concurrency, operation=operation
        ),
        transport_name=settings.transport,
        redactor=vault.redactor(),
        mapped=mapped,
        id_header=settings.call.id_header,
        request_id_headers=(settings.request_id_header,) if settings.request_id_header else (),
    )
    _check_paths(settings)
    _check_key_use(settings.key, config)
    return config


def _call(settings: HttpTable, names: Names, *, per_item: tuple[tuple[str, Template], ...]) -> CallShape:
    return CallShape(
        method=settings.call.method,
        path=Template(settings.call.path, place="[provider.call] path", names=names),
        body=_body(settings.call, names),
        headers=per_item,
        key_header=settings.key.header if settings.key else None,
    )


def _stream(call: CallTable) -> Stream | None:
    if call.stream_end is not None and call.stream != "events":
        raise bad_setting(
            '[provider.call] stream_end is for stream = "events"', hint="the other streams have an end of their own"
        )
    if call.stream is None:
        return None
    return Stream(call.stream, optional(call.stream_end, place="[provider.call] stream_end"))


def _check_paths(settings: HttpTable) -> None:
    paths = {"[provider.call] path": settings.call.path}
    if settings.lookup is not None:
        paths["[provider.lookup] path"] = settings.lookup.path
    if settings.preflight is not None:
        paths["[provider.preflight] path"] = settings.preflight.path
    if settings.identity is not None:
        paths["[provider.identity] path"] = settings.identity.path
    for place, path in paths.items():
        if not path.startswith("/") or not path.isascii() or not path.isprintable() or " " in path or "#" in path:
            raise bad_setting(f"{place} is not a path", hint='it starts with "/" and is percent-encoded where needed')


def _check_key_use(key: KeyTable | None, config: HttpConfig) -> None:
    sent = any("key" in template.names for template in config.call.templates)
    if key is None and any("key" in template.names for template in config.templates):
        raise bad_setting(
            "the templates use {key}, but there is no [provider.key]", hint="add the table with retention"
        )
    if key is not None and key.header is None and not sent:
        raise bad_setting(
            "[provider.key] does not say where the key travels", hint='add header = "...", or use {key} in the body'
        )
    if key is not None and key.header is not None and TOKEN.fullmatch(key.header) is None:
        raise bad_setting(f"[provider.key] header {key.header!r} is not a header's name", hint="check its name")


def _body(call: CallTable, names: Names) -> Body:
    if call.json is not None and call.form is not None:
        raise bad_setting("[provider.call] has both json and form", hint="a call has one body")
    if call.json is not None:
        return JsonBody(call.json, place="[provider.call] json", names=names)
    if call.form is not None:
        return FormBody(call.form, place="[provider.call] form", names=names)
    return NoBody()


def _declaration(
    settings: HttpTable, *, operation: str, lookup: HttpLookup | None, executions: ExecutionReader
) -> Declaration:
    key = None
    if settings.key is not None:
        key = KeyDeclaration(
            carrier=f"header {settings.key.header}" if settings.key.header else "the call's own fields",
            format=KeyFormat(settings.key.format, settings.key.max_length),
            retention_us=_retention_us(settings.key.retention),
            stores_errors=settings.key.stores_errors,
        )
    default_us = MAX_EXECUTION_WITH_KEYS_US if key else MAX_EXECUTION_US
    return Declaration(
        kind="http",
        operation=operation,
        key=key,
        lookup=lookup.declaration if lookup else None,
        max_execution_us=default_us if settings.max_execution is None else int(settings.max_execution),
        timeout_us=int(settings.timeout),
        settles_later=executions.status.settles_later,
        rate=settings.rate,
        preflight=f"GET {settings.preflight.path}" if settings.preflight else "",
        identity="read from the API" if settings.identity else ("from the configuration" if settings.account else ""),
    )


def _retention_us(text: str) -> int | None:
    if text == "forever":
        return None
    try:
        return duration_us(text)
    except ValueError as error:
        raise bad_setting(f"[provider.key] retention: {error}", hint='or "forever"') from error


def _digest(settings: HttpTable, address: str) -> str:
    """SHA-256 over what decides what a call does: where it goes, what it says, under which key.

    How answers are read (rules, look-up, expressions, times) may be corrected between runs, and is not part of it; of
    credentials only where they are. A server on this machine may come back on another port.
    """
    call = settings.call
    facts = {
        "base_url": re.sub(r"^(https?://(?:127\.0\.0\.1|localhost|\[::1\])):\d+", r"\1", address),
        "call": [call.method, call.path, call.json, call.form, call.headers],
        "key": None
        if settings.key is None
        else [settings.key.header, settings.key.format, min(settings.key.max_length, 255)],
        "headers": {
            name: "" if is_secret_header(name) or references(value) else value
            for name, value in settings.headers.items()
        },
        "query": sorted(settings.query),
        "account": settings.account,
        "mode": settings.mode,
    }
    return hashlib.sha256(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)).hexdigest()
