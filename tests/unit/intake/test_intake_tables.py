"""The [item], [input] and [batch] input settings: every wrong one is told, with what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from payonce.intake import FileFormat, ItemColumns, Query, SettingFault, read_format, read_item, read_source
from tests.unit.intake.intakekit import only_problem, read_file


def test_sound_tables() -> None:
    """All settings at once."""
    faults: list[SettingFault] = []
    table = {"id": "a", "target": "b", "amount": "c", "currency": {"value": "usd"}, "fields": ["x", "y"]}
    assert read_item(table, faults, needs=("z",)) == ItemColumns(
        id="a", target="b", amount="c", currency_value="USD", fields=("x", "y"), needs=("z",)
    )
    stated = {"encoding": "cp1252", "delimiter": "tab", "quote": "'", "decimal": ",", "thousands": "", "preamble": 3}
    assert read_format(stated | {"sheet": "S", "date_format": "%d.%m.%Y"}, faults) == FileFormat(
        "cp1252", "\t", "'", ",", "", "%d.%m.%Y", "S", 3
    )
    assert read_source("a.csv", faults) == "a.csv"
    assert read_source({"url": "sqlite:a", "query": "SELECT 1"}, faults) == Query("sqlite:a", "SELECT 1")
    assert faults == []


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"amount": "a", "currency": "c"}, "id"),
        ({"id": ""}, "id"),
        ({"id": 3}, "id"),
        ({"id": "a", "amount": "b", "amount_minor": "c"}, "amount_minor"),
        ({"id": "a", "currency": {"value": "XYZ"}}, "currency"),
        ({"id": "a", "currency": {"valu": "USD"}}, "currency"),
        ({"id": "a", "currency": 3}, "currency"),
        ({"id": "a", "fields": "x"}, "fields"),
        ({"id": "a", "targt": "x"}, "targt"),
    ],
)
def test_wrong_item_tables(table: dict[str, Any], key: str) -> None:
    """Each fault names its setting."""
    faults: list[SettingFault] = []
    read_item(table, faults)
    assert [(fault.table, fault.key) for fault in faults] == [("item", key)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("encoding", "klingon"),
        ("encoding", "base64"),
        ("delimiter", ";;"),
        ("delimiter", "\n"),
        ("quote", "''"),
        ("decimal", ";"),
        ("thousands", "x"),
        ("date_format", "date"),
        ("sheet", ""),
        ("preamble", -1),
        ("preamble", True),
        ("delimeter", ";"),
    ],
)
def test_wrong_input_tables(name: str, value: Any) -> None:
    """Each fault names its setting, and the others stay."""
    faults: list[SettingFault] = []
    assert read_format({name: value, "quote": "'"} if name != "quote" else {name: value}, faults).decimal is None
    assert [(fault.table, fault.key) for fault in faults] == [("input", name)]


def test_the_two_separators_differ() -> None:
    """One character cannot be both."""
    faults: list[SettingFault] = []
    read_format({"decimal": ",", "thousands": ","}, faults)
    assert [fault.key for fault in faults] == ["thousands"]


@pytest.mark.parametrize(
    "source",
    ["", {}, {"url": "x"}, {"url": "x", "query": ""}, {"url": "x", "query": "y", "z": 1}, {"url": 1, "query": 2}],
)
def test_wrong_sources(source: Any) -> None:
    """A path, or an address with a query."""
    faults: list[SettingFault] = []
    read_source(source, faults)
    assert [(fault.table, fault.key) for fault in faults] == [("batch", "input")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"delimiter": "ab"},
        {"delimiter": '"'},
        {"quote": "ab"},
        {"decimal": ";"},
        {"thousands": "1"},
        {"decimal": ",", "thousands": ","},
    ],
)
def test_settings_made_by_hand_are_checked_too(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """What no file can have is a problem, not a crash."""
    (tmp_path / "in.csv").write_text("ref,amount,currency\nA,1,USD\n")
    with read_file(tmp_path / "in.csv", id="ref", amount="amount", currency="currency", **wrong) as intake:
        assert only_problem(intake).code == "bad_setting"
