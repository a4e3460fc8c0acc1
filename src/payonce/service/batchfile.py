"""The batch file: one TOML file that says what the batch is, how it is run, and against which provider.

Reads and checks; opens nothing else, resolves no environment variable and sends nothing. The provider's table is kept
as it was written: ``${NAME}`` is resolved by the provider's code only, so that no credential is ever in these settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from payonce.core.model import Limits
from payonce.intake import SettingFault, read_format, read_item, read_source
from payonce.intake.settings import Expect, FileFormat, ItemColumns, OnDuplicate, Query
from payonce.service import batchfile_tables as tables
from payonce.service.addresses import absolute_ledger, has_literal_password
from payonce.service.batchfile_check import Faults, check_names, read_table
from payonce.service.batchfile_limits import Reader, read_limits
from payonce.service.tomltext import read_toml

T = TypeVar("T", bound=msgspec.Struct)
_FAULT_CODES: Final = {"no such": "unknown_setting", "missing": "missing_setting"}


@dataclass(frozen=True, slots=True)
class BatchFile:
    """A checked batch file. ``base`` is the folder that relative paths start from, ``ledger`` an absolute address.

    ``provider``, ``statement`` and ``trail`` are the raw tables; their readers check them. ``read_targets``: see
    engine.run.
    ``warnings`` are sentences for people about settings that were adjusted.
    """

    path: Path
    base: Path
    id: str
    operation: str
    namespace: str
    source: str | Query
    on_duplicate: OnDuplicate
    limits: Limits
    provider: Mapping[str, Any]
    item: ItemColumns
    format: FileFormat
    statement: Mapping[str, Any] = field(default_factory=dict)
    trail: Mapping[str, Any] = field(default_factory=dict)
    expect: Expect = Expect()
    ledger: str | None = None
    read_targets: bool = True
    warnings: tuple[str, ...] = ()


def load(path: Path) -> BatchFile:
    """Reads and checks a batch file. Raises UsageError where there is none, ConfigError where it is not TOML (with
    line and column), and BatchFileError with every wrong setting: its table and name, what is wrong with it and what is
    allowed.
    """
    raw, text = read_toml(path, what="batch file")
    faults = Faults(file=str(path), text=text)
    sound = _sound_tables(raw, faults)
    batch = _read(sound, tables.BatchTable, "batch", faults)
    wrong: list[SettingFault] = []
    item = read_item(sound["item"], wrong) if "item" in sound else None
    file_format = read_format(sound.get("input", {}), wrong)
    source = read_source(batch.input, wrong) if batch else ""
    _add(wrong, faults)
    ledger = _read(sound, tables.LedgerTable, "ledger", faults)
    if ledger is not None and ledger.url and has_literal_password(ledger.url):
        text = "the password must not be written here: put it into an environment variable and write ${NAME}"
        faults.add(text, table="ledger", key="url", code="literal_secret")
    limits, warnings, provider = read_limits(sound, faults)
    expect = _expect(sound, faults)
    faults.raise_if_any()
    if batch is None or limits is None or item is None or ledger is None:
        raise AssertionError("a table without faults was not read")
    base = path.resolve().parent
    return BatchFile(
        path=path,
        base=base,
        id=batch.id,
        operation=batch.operation,
        namespace=batch.namespace,
        source=source,
        on_duplicate=batch.on_duplicate,
        limits=limits,
        provider=provider,
        expect=expect,
        ledger=absolute_ledger(ledger.url, base=base) if ledger.url else None,
        read_targets=sound.get("limits", {}).get("read_targets", True),
        warnings=warnings,
        item=item,
        format=file_format,
        statement=sound.get("statement", {}),
        trail=sound.get("trail", {}),
    )


def _sound_tables(raw: Mapping[str, Any], faults: Faults) -> dict[str, Mapping[str, Any]]:
    """The known tables that are tables. What is missing, misspelt or no table is added to the faults."""
    known = (*tables.TABLES, *tables.RAW_TABLES)
    check_names(raw, known, table="", faults=faults)
    for name in known:
        if name in raw and not isinstance(raw[name], dict):
            faults.add(f"must be a table: [{name}] on a line of its own", table=name, code="bad_setting")
        elif name in tables.NEEDED and name not in raw:
            faults.add(f"missing: the file needs a [{name}] table", table=name, code="missing_setting")
    provider = raw.get("provider")
    if isinstance(provider, dict) and not isinstance(provider.get("kind"), str):
        faults.add("missing; payonce providers lists the kinds", table="provider", key="kind", code="missing_setting")
    return {name: value for name, value in raw.items() if name in known and isinstance(value, dict)}


def _add(wrong: list[SettingFault], faults: Faults) -> None:
    """The intake's faults, each at its line."""
    for fault in wrong:
        code = next((code for start, code in _FAULT_CODES.items() if fault.message.startswith(start)), "bad_setting")
        faults.add(fault.message, table=fault.table, key=fault.key, value=fault.value, code=code)


def _read(raw: Mapping[str, Any], struct: type[T], table: str, faults: Faults) -> T | None:
    """The table; one that is not there is read as an empty one, unless it is needed: that has been noted already."""
    if table not in raw and table in tables.NEEDED:
        return None
    return read_table(raw.get(table, {}), struct, table=table, faults=faults)


def _expect(raw: Mapping[str, Any], faults: Faults) -> Expect:
    if "expect" not in raw:
        return Expect()
    table = read_table(raw["expect"], tables.ExpectTable, table="expect", faults=faults)
    if table is None:
        return Expect()
    return Expect(items=table.items, total=Reader("expect", faults).amounts("total", table.total))
