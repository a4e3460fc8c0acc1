"""TOML files as people wrote them: read with every fault placed at its line, so that an editor can go there.

Only text is looked at; what a setting means is for others.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from payonce.core.errors import ConfigError, UsageError

_PLACE = re.compile(r"\(at line (\d+), column (\d+)\)")
_HEADER = re.compile(r"\s*\[\[?\s*([^\]#]+?)\s*\]\]?\s*(?:#.*)?$")
_MOST_BYTES = 4 * 1024 * 1024


def read_toml(path: Path, *, what: str) -> tuple[dict[str, Any], str]:
    """The file's tables and its text. ``what`` names the kind of file in messages (``batch file``).

    Raises UsageError where it is missing or unreadable, ConfigError with line and column where it is not TOML.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(
            f"there is no {what} {path}",
            code="file_not_found",
            hint="check the path, or write a first one with: payonce init",
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot read the {what} {path}: {error.strerror}", code="file_unreadable", hint="check its permissions"
        ) from error
    if len(data) > _MOST_BYTES:
        raise ConfigError(
            f"{path} is larger than 4 MiB and cannot be a {what}",
            code="bad_toml",
            hint="items belong in the file that `batch.input` names",
        )
    return parse_toml(data, name=str(path), what=what)


def parse_toml(data: bytes, *, name: str, what: str) -> tuple[dict[str, Any], str]:
    """The tables and the text of some bytes. Raises ConfigError with line and column where they are not TOML."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"{name}, line {line}: not UTF-8", code="bad_toml", hint=f"save the {what} as UTF-8"
        ) from None
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        where = f", line {place[1]}, column {place[2]}" if place else ""
        reason = _PLACE.sub("", str(error)).strip()
        raise ConfigError(
            f"{name}{where}: {reason[:1].lower()}{reason[1:]}",
            code="bad_toml",
            hint="text stands in double quotes, one setting a line; see docs/reference/batch-file.md",
        ) from None


def line_of(text: str, *, table: str, key: str | None) -> int | None:
    """The line, from 1, of a setting in its table, or of the table where the key is not found. None where neither is.

    A look through the text, not a parse: an aid for people, never used to decide anything.
    """
    current, table_line = "", None
    wanted = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[.=]") if key else None
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            current = header[1].replace(" ", "")
            if current == table or (table_line is None and current.startswith(f"{table}.")):
                table_line = table_line or number
            if key and current == f"{table}.{key}":
                return number
        elif current == table and wanted and wanted.match(line):
            return number
    return table_line


def toml_text(value: str) -> str:
    """A text as a TOML basic string: JSON's escapes are TOML's."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
