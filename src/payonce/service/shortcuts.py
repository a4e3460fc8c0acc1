"""The short way: an input file, a provider and a name become a batch file, which is then run like any other.

The batch file is written before anything else, so that a crash is resumed with ``payonce run`` or the same short
command. It is never overwritten with other contents. No credential is ever written into it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from payonce.core.errors import PayonceError, UsageError
from payonce.core.money import currency_code
from payonce.providers.secrets import is_secret_setting, references
from payonce.service.batchfile import load
from payonce.service.opening import opened, url_of

_TARGETS: Final[dict[str, tuple[str, ...]]] = {
    "refund": ("target", "charge", "charge_id", "payment_intent", "payment_intent_id", "capture_id", "psp_reference"),
    "payout": ("target", "destination", "receiver", "payee", "bank_account", "transfer_instrument"),
    "invoice": ("target", "customer", "customer_id"),
}
_IDS: Final = ("id", "item_id", "request", "request_id", "refund_id", "payout_id", "invoice_id", "reference")
_MINOR: Final = ("amount_minor", "amount_cents", "cents")
_HEAD_BYTES: Final = 64 * 1024
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Columns:
    """Which column is which; None is found by its name. ``fixed_currency`` is one currency for all rows."""

    id: str | None = None
    target: str | None = None
    amount: str | None = None
    currency: str | None = None
    fixed_currency: str | None = None


@dataclass(frozen=True, slots=True)
class Shortcut:
    """What a short command said. ``provider`` are further settings of the provider's table, as text."""

    operation: str
    source: Path
    kind: str
    batch: str
    columns: Columns = Columns()
    provider: Mapping[str, str] = field(default_factory=dict)
    rate: str | None = None


def write(wanted: Shortcut, *, folder: Path) -> tuple[Path, bool]:
    """The batch file of a short command, written into ``folder`` as ``BATCH.toml``, and whether it is new; the same again
    is no error.

    Raises UsageError: no such input, a column that cannot be told, a literal credential, another file of that name.
    """
    if _FILE_NAME.fullmatch(wanted.batch) is None:
        raise UsageError(
            f"{wanted.batch!r} cannot be a batch's name here, since its file is called by it",
            code="bad_batch_name",
            hint="use letters, digits, dots, dashes and underscores",
        )
    if not wanted.source.is_file():
        raise UsageError(f"there is no {wanted.source}", code="file_not_found", hint="name the input file")
    path = folder / f"{wanted.batch}.toml"
    text = batch_text(wanted, _columns(wanted), source=_from(folder, wanted.source))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
        return path, True
    except FileExistsError:
        if path.read_text(encoding="utf-8") != text:
            raise UsageError(
                f"{path} is there already and says something else",
                code="batch_file_exists",
                hint=f"payonce run {path} goes on with it; for another batch, take another name",
            ) from None
    return path, False


def take_back(path: Path, *, ledger: str | None) -> bool:
    """Removes a new batch file whose batch was not sealed; whether it did. A sealed batch keeps its file.

    ``ledger`` is what the command line says of the ledger.
    """
    file = load(path)
    try:
        with opened(url_of(file, ledger), read_only=True) as found:
            if found.batches(file.id):
                return False
    except UsageError as error:
        if error.code not in ("no_ledger", "no_ledger_folder"):
            return False
    except PayonceError:
        return False  # a ledger that cannot be read may hold the batch
    path.unlink(missing_ok=True)
    return True


def batch_text(wanted: Shortcut, item: Mapping[str, str], *, source: str) -> str:
    """The batch file's text. ``item`` are the settings of its [item] table, as TOML values."""
    lines = [
        f"# Written by: payonce {wanted.operation} {wanted.source.name} --provider {wanted.kind} --batch {wanted.batch}",
        "# Run it, and run it again after a crash: payonce run " + f"{wanted.batch}.toml",
        "",
        "[batch]",
        f"id = {_text(wanted.batch)}",
        f"operation = {_text(wanted.operation)}",
        f"input = {_text(source)}",
        "",
        "[item]",
        *(f"{name} = {value}" for name, value in item.items()),
        "",
        "[limits]",
        "concurrency = 16",
        *([f"rate = {_text(wanted.rate)}"] if wanted.rate else []),
        "",
        "[provider]",
        f"kind = {_text(wanted.kind)}",
        *(f"{name} = {_setting(name, value)}" for name, value in wanted.provider.items()),
    ]
    return "\n".join(lines) + "\n"


def _from(folder: Path, source: Path) -> str:
    """How the batch file names its input: from its own folder, if the input is in there."""
    whole, base = source.resolve(), folder.resolve()
    return str(whole.relative_to(base)) if whole.is_relative_to(base) else str(whole)


def _setting(name: str, value: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise UsageError(f"--set {name!r} is no setting's name", code="usage", hint="like --set environment=test")
    if is_secret_setting(name) and not references(value):
        raise UsageError(
            f"--set {name} is a credential and is not written into a file",
            code="literal_secret",
            hint=f"put it into an environment variable: --set '{name}=${{NAME}}'",
        )
    return _text(value)


def _columns(wanted: Shortcut) -> dict[str, str]:
    """The [item] table: as said, else by the names of the input's columns."""
    said, names = wanted.columns, column_names(wanted.source)
    find = _Finder(names, wanted.source)
    target = said.target or find.first(_TARGETS[wanted.operation])
    found = {"id": _text(said.id or find.first(_IDS) or target or find.missing("id", "--id"))}
    if target is not None and _text(target) != found["id"]:
        found["target"] = _text(target)
    minor = None if said.amount else find.first(_MINOR)
    if minor is not None and find.first(("amount",)) is None:
        found["amount_minor"] = _text(minor)
    else:
        found["amount"] = _text(said.amount or find.first(("amount",)) or find.missing("amount", "--amount"))
    if said.fixed_currency is not None:
        found["currency"] = f"{{value = {_text(currency_code(said.fixed_currency))}}}"
    else:
        column = said.currency or find.first(("currency",))
        found["currency"] = _text(column or find.missing("currency", "--currency or --all-in USD"))
    return found


def guessed_id(wanted: Shortcut) -> str | None:
    """Which column was taken as the id, in words, where nobody named one and others could be it; None otherwise."""
    if wanted.columns.id is not None:
        return None
    names = column_names(wanted.source)
    taken = json.loads(_columns(wanted)["id"])
    target = wanted.columns.target or _Finder(names, wanted.source).first(_TARGETS[wanted.operation])
    others = [name for name in names if name not in (taken, target) and _like_an_id(name)]
    if not others:
        return None
    return f"the id of each item is column {taken!r}; if it is {' or '.join(map(repr, others))}, say --id COLUMN"


def _like_an_id(name: str) -> bool:
    plain = name.strip().lower()
    return plain in _IDS or plain.endswith(("_id", " id", "_request", "_reference", "_number"))


class _Finder:
    """Finds columns by their names, whatever their case."""

    def __init__(self, names: Sequence[str], source: Path) -> None:
        self._names = {name.strip().lower(): name for name in names}
        self._source = source

    def first(self, wanted: Sequence[str]) -> str | None:
        """The first of some names that is there."""
        return next((self._names[name] for name in wanted if name in self._names), None)

    def missing(self, what: str, option: str) -> str:
        """Raises UsageError for a column that cannot be told."""
        there = ", ".join(self._names.values()) or "none that can be read here"
        raise UsageError(
            f"{self._source} has no column that is plainly the {what} (columns: {there})",
            code="column_unclear",
            hint=f"name it: {option}",
        )


def column_names(source: Path) -> list[str]:
    """The input's columns, as far as its first line shows them; none for formats that have no such line."""
    with source.open("rb") as file:
        head = file.read(_HEAD_BYTES).decode("utf-8-sig", errors="replace")
    first = next((line for line in head.splitlines() if line.strip()), "")
    match source.suffix.lower():
        case ".jsonl" | ".ndjson":
            try:
                row = json.loads(first)
            except ValueError:
                return []
            return list(row) if isinstance(row, dict) else []
        case ".csv" | ".tsv" | ".txt":
            delimiter = max(",;\t|", key=first.count)
            return next(csv.reader(io.StringIO(first), delimiter=delimiter), [])
        case _:
            return []


def _text(value: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
