"""Addresses of ledgers as people write them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote

from payonce.core.errors import ConfigError
from payonce.ledger.postgres_address import is_postgres, parse

DEFAULT_LEDGER: Final = "sqlite:payonce.db"
_FILES: Final = ("sqlite", "jsonl")
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_USER: Final = re.compile(r"[a-z]+://([^/?#]*)@", re.IGNORECASE)
_SECRET_OPTIONS: Final = ("password", "sslpassword")


def absolute_ledger(url: str, *, base: Path) -> str:
    """A ledger's address with its file path made absolute from ``base``; addresses of servers stay as they are."""
    scheme, colon, rest = url.partition(":")
    if not colon or rest.startswith("//") or scheme not in _FILES:
        return url
    return f"{scheme}:{base / rest}"


def ledger_url(option: str | None, file: str | None = None) -> str:
    """The ledger's address: what the command line says, else PAYONCE_LEDGER, else the batch file (absolute already, with
    ``${NAME}`` replaced from the environment), else ``sqlite:payonce.db`` in the working directory."""
    chosen = option or os.environ.get("PAYONCE_LEDGER")
    if chosen:
        return absolute_ledger(chosen, base=Path.cwd())
    return expanded(file, os.environ) if file else absolute_ledger(DEFAULT_LEDGER, base=Path.cwd())


def expanded(url: str, environ: Mapping[str, str]) -> str:
    """An address with its references replaced; what stands for a part of it is percent-encoded. Raises ConfigError
    ``missing_variable``, which names the variable and no value."""
    whole = _REFERENCE.fullmatch(url) is not None

    def value_of(found: re.Match[str]) -> str:
        value = environ.get(found[1], "")
        if not value:
            raise ConfigError(
                f"ledger.url needs the environment variable {found[1]}, which is not set",
                code="missing_variable",
                hint=f"export {found[1]}=... in the shell or the service that starts payonce",
            )
        return value if whole else quote(value, safe="")

    return _REFERENCE.sub(value_of, url)


def has_literal_password(url: str) -> bool:
    """Whether a password is written out in an address of a server."""
    user = _USER.match(url)
    words = [user[1].partition(":")[2]] if user else []
    words += [value for name, value in parse_qsl(url.partition("?")[2]) if name in _SECRET_OPTIONS]
    return any(word and not _REFERENCE.fullmatch(word) for word in words)


def shown_ledger(url: str) -> str:
    """An address as it may be shown: a server's without user, password and options."""
    return parse(url).shown if is_postgres(url) else url
