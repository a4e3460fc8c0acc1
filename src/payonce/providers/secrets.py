"""Credentials: taken from the environment only, kept out of requests, digests, messages and reprs.

A literal credential in a batch file is refused: such files are mailed, committed and sealed into ledgers.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, quote_plus, urlsplit

from payonce.core.errors import ConfigError

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SECRET_HEADER: Final = re.compile(
    r"authorization|cookie|(?:^|[-_])(?:api[-_]?key|key|token|secret|password|signature|auth)(?:$|[-_])"
    r"|apikey|accesskey",
    re.IGNORECASE,
)
_NOT_SECRET: Final = re.compile(r"idempotency|request-id|content-|key-id$", re.IGNORECASE)
_SECRET_SETTING: Final = re.compile(r"api_?key|token|password|passwd|secret|credential|private_?key", re.IGNORECASE)
# Shorter values would be found by chance in every other text.
_SHORTEST: Final = 6
MASK: Final = "[secret]"


def is_secret_header(name: str) -> bool:
    """Whether a header of this name carries a credential by custom."""
    return _SECRET_HEADER.search(name) is not None and _NOT_SECRET.search(name) is None


def is_secret_setting(name: str) -> bool:
    """Whether a setting or parameter of this name holds a credential by custom."""
    return _SECRET_SETTING.search(name) is not None


def references(text: str) -> tuple[str, ...]:
    """The names of the environment variables that a text refers to."""
    return tuple(_REFERENCE.findall(text))


class Vault:
    """Resolves ``${NAME}`` and remembers which values are secret, so that they can be removed from any text."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._secrets: set[str] = set()

    def __repr__(self) -> str:
        return f"Vault({len(self._secrets)} secrets)"

    def resolve(self, text: str, *, place: str, secret: bool) -> str:
        """The text with its references replaced. ``secret``: what they are replaced with is a credential.

        Raises ConfigError ``missing_variable`` naming the variable and the setting, never a value.
        """

        def value_of(found: re.Match[str]) -> str:
            name = found[1]
            value = self._environ.get(name, "")
            if not value:
                raise ConfigError(
                    f"{place} needs the environment variable {name}, which is not set",
                    code="missing_variable",
                    hint=f"export {name}=... in the shell or the service that starts payonce",
                )
            if secret:
                self.keep(value, place=f"the environment variable {name} ({place})")
            return value

        return _REFERENCE.sub(value_of, text)

    def secret(self, text: str, *, place: str) -> str:
        """A setting that is a credential: resolved, and refused (``literal_secret``) if it is written out."""
        if not references(text):
            raise ConfigError(
                f"{place} is a credential and must not be written in the batch file",
                code="literal_secret",
                hint=f'put it into an environment variable and write {place} = "${{NAME}}"',
            )
        return self.resolve(text, place=place, secret=True)

    def keep(self, value: str, *, place: str) -> None:
        """Remembers a value as secret. Raises ConfigError ``bad_secret`` for one that cannot be one."""
        if len(value) < _SHORTEST or not value.isprintable() or value != value.strip():
            raise ConfigError(
                f"{place} cannot be a credential: it is too short, has blanks around it or control characters",
                code="bad_secret",
                hint="check how the variable is set; a stray newline from a file is the usual cause",
            )
        self._secrets.add(value)

    def address(self, url: str, *, place: str) -> str:
        """An address, resolved; credentials inside it (``user:password@``) must be references and become secret."""
        userinfo = re.match(r"[a-z][a-z0-9+.-]*://([^/@]*)@", url, re.IGNORECASE)
        if userinfo is None:
            resolved = self.resolve(url, place=place, secret=False)
        else:
            hidden = self.secret(userinfo[1], place=f"{place} (user and password)")
            resolved = url.replace(userinfo[1], hidden, 1)
            resolved = self.resolve(resolved, place=place, secret=False)
        password = urlsplit(resolved).password
        if password:
            self._secrets.add(password)
        return resolved

    def redactor(self) -> Redactor:
        """What removes all secrets known so far."""
        return Redactor(self._secrets)


class Redactor:
    """Removes secret values from texts and bodies, also in their percent-encoded, JSON and basic-auth forms."""

    __slots__ = ("_forms", "_raw")

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: set[str] = set()
        for value in secrets:
            escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("/", "\\/")
            coded = base64.b64encode(value.encode()).decode()
            forms |= {value, quote(value, safe=""), quote_plus(value), escaped, escaped.replace("\\/", "/"), coded}
        # The longest first: a secret that contains another must not leave a rest of itself.
        self._forms = tuple(sorted(forms, key=len, reverse=True))
        self._raw = tuple(form.encode() for form in self._forms)

    def __repr__(self) -> str:
        return f"Redactor({len(self._forms)} forms)"

    def text(self, text: str) -> str:
        """The text without any secret."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MASK)
        return text

    def body(self, body: bytes) -> bytes:
        """The bytes without any secret."""
        for form in self._raw:
            if form in body:
                body = body.replace(form, MASK.encode())
        return body
