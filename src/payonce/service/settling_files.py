"""Webhooks kept as files: a file or a folder of them, as raw events or with the headers they came with.

An entry is an event as the provider sent it, or ``{"headers": {...}, "body": "..."}`` with the body as text exactly as
received (``body_base64`` for anything but UTF-8): a signature is over bytes, and JSON that was written anew differs.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from payonce.core.errors import UsageError
from payonce.providers.official.facts import Delivery

_KINDS: Final = (".json", ".jsonl", ".ndjson")


def read_deliveries(paths: Sequence[Path]) -> Iterator[Delivery]:
    """All deliveries of some files and folders, files of a folder by name. Raises UsageError naming file and line."""
    for path in paths:
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.suffix.lower() in _KINDS and one.is_file())
            if not inside:
                raise UsageError(
                    f"there are no events in {path}", code="no_events", hint=f"files there end in {', '.join(_KINDS)}"
                )
            for one in inside:
                yield from _file(one)
        elif path.is_file():
            yield from _file(path)
        else:
            raise UsageError(f"there is no {path}", code="no_such_file", hint="name a file or a folder of events")


def _file(path: Path) -> Iterator[Delivery]:
    data = path.read_bytes()
    if path.suffix.lower() != ".json":
        for number, line in enumerate(data.splitlines(), start=1):
            if line.strip():
                yield _delivery(line, f"{path}, line {number}")
        return
    tree = _parsed(data, str(path))
    if isinstance(tree, list):
        # Each entry keeps its own bytes, as it stood in the file.
        for number, raw in enumerate(msgspec.json.decode(data, type=list[msgspec.Raw]), start=1):
            yield _delivery(bytes(raw), f"{path}, entry {number}")
        return
    yield _delivery(data, str(path))


def _delivery(data: bytes, place: str) -> Delivery:
    tree = _parsed(data, place)
    if not isinstance(tree, dict) or not isinstance(tree.get("headers"), dict):
        return Delivery(data, {}, place)
    headers = {str(name).lower(): str(value) for name, value in tree["headers"].items()}
    if isinstance(tree.get("body"), str):
        return Delivery(tree["body"].encode("utf-8"), headers, place)
    if isinstance(tree.get("body_base64"), str):
        try:
            return Delivery(base64.b64decode(tree["body_base64"], validate=True), headers, place)
        except binascii.Error as error:
            raise _broken(place, "its body_base64 is no Base64") from error
    raise _broken(place, "it has headers and no body as text")


def _parsed(data: bytes, place: str) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise _broken(place, f"it is no JSON ({error})") from error


def _broken(place: str, why: str) -> UsageError:
    return UsageError(
        f"{place}: {why}",
        code="bad_event_file",
        hint='an entry is an event, or {"headers": {...}, "body": "the text as it was received"}',
    )
