"""SQL from files: named, described blocks, one file for each side of each dialect."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, Final, LiteralString, cast

_NAME: Final = re.compile(r"^-- (\w+) --\n", re.MULTILINE)


@cache
def queries(dialect: str, name: str) -> dict[str, LiteralString]:
    """All statements of one file by name, without comments and the closing semicolon."""
    text = (files("payonce.ledger") / "sql" / dialect / f"{name}.sql").read_text("utf-8")
    parts = _NAME.split(text)[1:]
    blocks = dict(zip(parts[::2], parts[1::2], strict=True))
    return {block: _literal(_statement(sql)) for block, sql in blocks.items()}


def _literal(text: Any) -> LiteralString:
    """The files are part of the package, so their text is as literal as if it stood here."""
    return cast(LiteralString, text)


def _statement(block: str) -> str:
    lines = [line for line in block.splitlines() if not line.startswith("--")]
    return "\n".join(lines).strip().removesuffix(";")
