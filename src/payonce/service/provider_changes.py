"""Which settings of [provider] are no longer what was sealed, for the error that says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

# Of an HTTP provider, what decides what a call does; all else, such as the rules for answers, may be corrected.
_HTTP: Final = frozenset({
    "base_url", "account", "mode", "headers", "query", "call.method", "call.path", "call.json", "call.form",
    "call.headers", "key", "key.header", "key.format", "key.max_length",
})  # fmt: skip
# Of any other, what does not.
_FREE: Final = frozenset({"timeout", "max_execution", "rate", "proxy", "ca_file", "verify_tls", "transport", "lag"})


def changed_settings(sealed: object, now: Mapping[str, Any] | None) -> str:
    """The settings that differ, as the end of a sentence; no value is shown, since one may be private.

    ``sealed`` is the table as the ledger keeps it, if it does. Where no setting differs, what one of them names does.
    """
    if not isinstance(sealed, Mapping) or now is None:
        return ""
    names = sorted(set(_differing(sealed, now)))
    if not names:
        return ": what they name differs, an environment variable or a function"
    return f": {', '.join(names)}"


def _differing(sealed: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    http = now.get("kind") == "http"
    for name in {*sealed, *now}:
        was, become = sealed.get(name), now.get(name)
        if was == become:
            continue
        inner = _inner(name, was, become) if http and name in ("call", "key") else [name]
        yield from (found for found in inner if (found in _HTTP if http else found not in _FREE))


def _inner(name: str, was: Any, become: Any) -> Iterator[str]:
    """Where both are tables, the settings in them; else the table itself."""
    if not isinstance(was, Mapping) or not isinstance(become, Mapping):
        yield name
        return
    yield from (f"{name}.{part}" for part in {*was, *become} if was.get(part) != become.get(part))
