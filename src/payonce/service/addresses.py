"""Addresses of ledgers as people write them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

DEFAULT_LEDGER: Final = "sqlite:payonce.db"
_FILES: Final = ("sqlite", "jsonl")


def absolute_ledger(url: str, *, base: Path) -> str:
    """A ledger's address with its file path made absolute from ``base``; addresses of servers stay as they are."""
    scheme, colon, rest = url.partition(":")
    if not colon or rest.startswith("//") or scheme not in _FILES:
        return url
    return f"{scheme}:{base / rest}"


def ledger_url(option: str | None, file: str | None = None) -> str:
    """The ledger's address: what the command line says, else PAYONCE_LEDGER, else the batch file (absolute already),
    else ``sqlite:payonce.db`` in the working directory."""
    chosen = option or os.environ.get("PAYONCE_LEDGER")
    if chosen:
        return absolute_ledger(chosen, base=Path.cwd())
    return file or absolute_ledger(DEFAULT_LEDGER, base=Path.cwd())
