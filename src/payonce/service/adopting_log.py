"""An old script's own log as executions: JSON Lines or CSV with an item's id and the provider's reference.

A line with a reference and no word against it proves an execution; any other proves only that something was started. One
reference is one execution of one item, so lines that give it to two refuse the file. A last line that was cut
off is set aside and named; damage anywhere else refuses the file, since what it hides could be money.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from payonce.core.errors import ConfigError, UsageError
from payonce.core.keys import digest
from payonce.core.money import Money, currency_code
from payonce.intake.ids import fault_of
from payonce.intake.settings import FileFormat
from payonce.reconcile.errors import refuse
from payonce.reconcile.table import no_such_columns, read_table
from payonce.reconcile.times import TimeFault, read_times

_ITEMS: Final = ("item", "item_id", "op_key", "op", "id", "request", "refund_request", "charge_id", "charge", "order_id", "invoice_id")  # fmt: skip
_REFERENCES: Final = ("reference", "refund_id", "provider_id", "payout_id", "transfer_id", "transaction_id", "refund", "result_id")  # fmt: skip
_OTHERS: Final = {
    "amount": ("amount",),
    "amount_minor": ("amount_minor", "amount_cents"),
    "currency": ("currency",),
    "time": ("time", "at", "created", "created_at", "timestamp", "ts"),
    "status": ("status", "state", "ev", "event", "result"),
}
_NOTHING_HAPPENED: Final = frozenset({"skipped", "planned", "queued", "todo"})
# Words of a line that has the provider's reference. Whatever is in neither proves nothing: it may be another word for "failed".
_DONE: Final = frozenset({
    "", "accepted", "ack", "captured", "committed", "complete", "completed", "confirmed", "created", "credited", "done", "executed",
    "finished", "issued", "ok", "paid", "processed", "refunded", "response", "result", "settled", "succeeded", "success", "successful",
    "transferred", "true", "200", "201",
})  # fmt: skip
_UNDER_WAY: Final = frozenset({
    "in_progress", "in_transit", "intent", "pending", "processing", "request", "requested", "sending", "sent", "start", "started",
    "submitted",
})  # fmt: skip


class AdoptTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[adopt]: the log's columns. Without it, common names are looked for."""

    item: str | None = None
    reference: str | None = None
    amount: str | None = None
    amount_minor: str | None = None
    currency: str | None = None
    time: str | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Logged:
    """One line of a log: with a reference an execution, without one something that was started. ``money`` None: not
    stated; ``minor`` an amount in minor units whose currency the line does not state; ``word`` its status, in small letters."""

    line: int
    item: str
    reference: str | None = None
    money: Money | None = None
    text: str | None = None
    minor: int | None = None
    at_us: int | None = None
    word: str = ""


@dataclass(frozen=True, slots=True)
class Log:
    """A log, read whole. ``torn`` is the number of a last line that was cut off; ``ignored`` are the lines that are of no
    use, with the reason, that one among them."""

    file: str
    sha256: str
    lines: tuple[Logged, ...]
    torn: int | None = None
    ignored: tuple[tuple[str, str], ...] = ()


def read_log(path: Path, mapping: Mapping[str, Any] | None) -> Log:
    """Reads a log. Raises StatementError where it cannot be read for certain, ConfigError for a wrong [adopt] table."""
    try:
        table = msgspec.convert(mapping or {}, AdoptTable)
    except msgspec.ValidationError as error:
        raise ConfigError(f"[adopt]: {error}", code="bad_adopt_mapping", hint="docs/how-to/adopt.md") from error
    if path.suffix.lower() in (".jsonl", ".ndjson", ".log"):
        records, ignored, sha256, torn = _json_lines(path)
    else:
        records, ignored, sha256, torn = _table(path, table)
    names = {name for _, record in records for name in record}
    columns = _columns(table, names, path.name)
    logged: list[Logged] = []
    for line, record in records:
        entry = _entry(line, record, columns, path.name)
        if entry is not None:
            logged.append(entry)
        else:
            ignored.append((line, "says that nothing happened"))
    _one_item_each(logged, path.name)
    named = tuple((str(line), why) for line, why in sorted(ignored))
    return Log(path.name, sha256, tuple(logged), torn, named)


def _one_item_each(lines: Sequence[Logged], file: str) -> None:
    first: dict[str, Logged] = {}
    for entry in lines:
        if entry.reference is None:
            continue
        other = first.setdefault(entry.reference, entry)
        if other.item != entry.item:
            refuse(
                f"{file}, lines {other.line} and {entry.line}: {entry.reference} is the reference of {other.item} and of {entry.item}",
                code="reference_taken",
                hint='one execution settles one item: find out whose it is and mend the log, or name another column: [adopt] reference = "COLUMN"',
                file=file,
                line=entry.line,
            )
        if other.money is not None and entry.money is not None and other.money != entry.money:
            refuse(
                f"{file}, lines {other.line} and {entry.line}: {entry.reference} is of {other.money} and of {entry.money}",
                code="other_amount", hint="find out which of the two was executed and mend the log", file=file, line=entry.line,
            )  # fmt: skip


Records = list[tuple[int, Mapping[str, str]]]
Unused = list[tuple[int, str]]


def _json_lines(path: Path) -> tuple[Records, Unused, str, int | None]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", code="unreadable", hint="check the path"
        ) from error
    texts = data.decode("utf-8-sig", "surrogateescape").split("\n")
    records: Records = []
    ignored: Unused = []
    torn: int | None = None
    for line, text in enumerate(texts, 1):
        if not text.strip():
            if line < len(texts):
                ignored.append((line, "blank"))
            continue
        try:
            entry = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
            if not isinstance(entry, dict):
                raise ValueError("no object")
        except (ValueError, RecursionError) as error:
            if line == len(texts) and isinstance(error, ValueError):
                # Only the last line may be a stump: a killed process cuts there and nowhere else.
                torn = line
                ignored.append((line, "cut off"))
                continue
            refuse(
                f"{path.name}, line {line} is damaged: {error}", code="damaged_log",
                hint="mend it by hand: what it hides may have been executed", file=path.name, line=line,
            )  # fmt: skip
        records.append((line, {k: _text(v) for k, v in entry.items()}))
    if not records:
        refuse(f"{path.name} is empty", code="no_usable_rows", hint="is it the right file?", file=path.name)
    return records, ignored, digest(data), torn


def _text(value: object) -> str:
    if value is None:
        return ""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _table(path: Path, table: AdoptTable) -> tuple[Records, Unused, str, int | None]:
    wanted = [(item, ref) for item in _named(table.item, _ITEMS) for ref in _named(table.reference, _REFERENCES)]
    read = read_table(path, wanted, FileFormat(), option="--from")
    cells = {name: read.cells(name) for name in read.columns if name}
    for name in read.floats:
        refuse(
            f"{path.name}: column {name!r} holds binary floats", code="float_money", hint="write text", file=path.name
        )
    rows: Records = [
        (line, {name: column[place] for name, column in cells.items()}) for place, line in enumerate(read.lines)
    ]
    return rows, [(entry.line, entry.why) for entry in read.ignored], read.digest, None


def _named(given: str | None, usual: tuple[str, ...]) -> tuple[str, ...]:
    return usual if given is None else (given,)


def _columns(table: AdoptTable, there: set[str], file: str) -> dict[str, str]:
    """The column of each fact."""
    found: dict[str, str] = {}
    for fact, usual in {"item": _ITEMS, "reference": _REFERENCES, **_OTHERS}.items():
        given = getattr(table, fact)
        if given is not None and given not in there:
            no_such_columns(file, sorted(there), [(given,)])
        name = given or next((name for name in usual if name in there), None)
        if name is not None:
            found[fact] = name
    if "item" not in found:
        refuse(
            f"{file} has no column of items",
            code="missing_column",
            hint='say which: [adopt] item = "COLUMN"',
            file=file,
        )
    return found


def _entry(line: int, record: Mapping[str, str], columns: Mapping[str, str], file: str) -> Logged | None:
    def cell(fact: str) -> str:
        return record.get(columns[fact], "").strip() if fact in columns else ""

    item, reference = cell("item"), cell("reference")
    for name, value in (("item", item), ("reference", reference)):
        fault = fault_of(value) if value or name == "item" else None
        if fault is not None:
            refuse(
                f"{file}, line {line}: the {name} {fault.message}",
                code=fault.code,
                hint="mend the log",
                file=file,
                line=line,
            )
    if not reference and cell("status").lower() in _NOTHING_HAPPENED:
        return None
    amount, minor, code = cell("amount"), cell("amount_minor"), cell("currency")
    money = None
    if code:
        currency = currency_code(code)
        money = Money(amount, currency) if amount else Money.of_minor(int(minor), currency) if minor else None
    return Logged(
        line, item, reference or None, money, amount or None, int(minor) if minor else None, _time(cell("time")),
        cell("status").lower(),
    )  # fmt: skip


def _time(text: str) -> int | None:
    try:
        moment = read_times([text])[0]
    except TimeFault:
        return None
    return None if moment is None else moment.at_us


def proving(log: Log) -> list[Logged]:
    """The lines that prove an execution: of each reference those that call it done, if none of its lines says otherwise."""
    doubted = {entry.reference for entry in log.lines if entry.word not in _DONE and entry.word not in _UNDER_WAY}
    return [e for e in log.lines if e.reference is not None and e.word in _DONE and e.reference not in doubted]


def unproven(log: Log, proven: Collection[str]) -> Iterator[Logged]:
    """What was started and is none of the proven items, each item once, with its earliest line."""
    seen: set[str] = set()
    for entry in log.lines:
        if entry.item not in proven and entry.item not in seen:
            seen.add(entry.item)
            yield entry
