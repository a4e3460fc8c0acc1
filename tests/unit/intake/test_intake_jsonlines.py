"""JSON Lines: what a decoder would change silently is kept exactly or refused with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.intake.intakekit import amounts, codes, only_problem, read_file


def lines(tmp_path: Path, *rows: str | dict[str, Any], name: str = "in.jsonl") -> Path:
    """A file with these lines."""
    path = tmp_path / name
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def row(**changes: Any) -> dict[str, Any]:
    """A sound row with changes."""
    return {"ref": "A1", "amount": "12.50", "currency": "USD"} | changes


def test_amounts_as_text_and_as_whole_numbers(tmp_path: Path) -> None:
    """``12`` is twelve in major units, exactly; in a column of minor units it is twelve of those."""
    path = lines(tmp_path, row(), row(ref="A2", amount=12), row(ref="A3", amount=7, currency="JPY"))
    with read_file(path) as intake:
        assert amounts(intake) == {"A1": "12.50 USD", "A2": "12.00 USD", "A3": "7 JPY"}
    path = lines(tmp_path, {"ref": "A1", "cents": 1250, "currency": "usd"})
    with read_file(path, id="ref", amount_minor="cents", currency="currency") as intake:
        assert amounts(intake) == {"A1": "12.50 USD"}


@pytest.mark.parametrize("amount", ["19.99", "10.0", "1e3", "0.1", "1E-2"])
def test_floats_are_no_amounts(tmp_path: Path, amount: str) -> None:
    """A JSON number with a fraction or an exponent is refused as money, whatever its value."""
    path = lines(tmp_path, f'{{"ref": "A1", "amount": {amount}, "currency": "USD"}}', row(ref="A2"))
    with read_file(path) as intake:
        assert codes(intake) == {1: "float_money"}
        assert list(amounts(intake)) == ["A2"]


def test_a_float_is_refused_beside_an_equal_whole_number(tmp_path: Path) -> None:
    """1, 1.0 and true are equal to Python; only the first is an amount."""
    with read_file(lines(tmp_path, row(amount=1), row(ref="A2", amount=1.0), row(ref="A3", amount=True))) as intake:
        assert codes(intake) == {2: "float_money", 3: "bad_amount"}


def test_ids_are_text_or_whole_numbers(tmp_path: Path) -> None:
    """Whole numbers are taken in full, however long; everything else is no id."""
    rows: list[Any] = [
        row(ref=123456789012345678901234567891),
        row(ref=12.0),
        row(ref=None),
        row(ref=True),
        row(ref=["x"]),
    ]
    with read_file(lines(tmp_path, *rows, {"amount": "1", "currency": "USD"})) as intake:
        assert list(amounts(intake)) == ["123456789012345678901234567891"]
        assert codes(intake) == {2: "float_id", 3: "missing_id", 4: "bad_id", 5: "bad_id", 6: "missing_id"}


def test_numbers_are_carried_exactly_or_refused(tmp_path: Path) -> None:
    """A number that a float cannot hold is not rounded."""
    path = lines(
        tmp_path,
        '{"ref":"A1","amount":"1","currency":"USD","t":0.70,"n":9007199254740993,"e":1e3,"list":[1.25,{"k":null}]}',
        '{"ref":"A2","amount":"1","currency":"USD","t":0.10000000000000000555}',
        '{"ref":"A3","amount":"1","currency":"USD","t":1e400}',
        '{"ref":"A4","amount":"1","currency":"USD","t":0.0}',
    )
    with read_file(path) as intake:
        assert codes(intake) == {2: "inexact_number", 3: "inexact_number"}
        first, last = intake.items()
        assert dict(first.fields) == {"t": 0.7, "n": 9007199254740993, "e": 1000.0, "list": [1.25, {"k": None}]}
        assert last.fields == {"t": 0.0}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('{"ref":"A1","ref":"A2","amount":"1","currency":"USD"}', "repeated_key"),
        ('{"ref":"A1","amount":"1","currency":"USD","x":{"a":1,"a":2}}', "repeated_key"),
        ('{"ref":"A1","amount":"1","amount" : "2","currency":"USD","x":"\\u0022:"}', "repeated_key"),
        ('{"ref":"A1","amount":"1","currency":"USD"', "bad_json"),
        ('{"ref":"A1","amount":"1","currency":"USD"} {}', "bad_json"),
        ('{"ref":"A1","amount":"1","currency":"USD","x":NaN}', "bad_json"),
        ('{"ref":"A1","amount":"1","currency":"USD","x":"\\ud800"}', "bad_json"),
        ('{"ref":"A1","amount":"1","currency":"USD","x":"\\u0000"}', "bad_character"),
        ('{"ref":"A1","amount":"1","currency":"USD","x":"\udcff"}', "bad_encoding"),
        ("[1]", "bad_json"),
        ("null", "bad_json"),
        ("[" * 5000, "bad_json"),
        ("ref,amount", "bad_json"),
    ],
)
def test_a_broken_line_is_refused_alone(tmp_path: Path, line: str, code: str) -> None:
    """The line is named; the ones around it are read."""
    path = tmp_path / "in.jsonl"
    sound = ['{"ref":"B1","amount":"1","currency":"USD"}', '{"ref":"B2","amount":"1","currency":"USD"}']
    path.write_bytes("\n".join([sound[0], line, sound[1]]).encode("utf-8", "surrogateescape"))
    with read_file(path) as intake:
        assert codes(intake) == {2: code}
        assert list(amounts(intake)) == ["B1", "B2"]
        assert (intake.counts.rows, intake.counts.refused) == (3, 1)


def test_lines_count_as_an_editor_counts_them(tmp_path: Path) -> None:
    """Blank lines count and are ignored; CR LF and spaces change nothing."""
    path = tmp_path / "in.jsonl"
    one, two = json.dumps(row()), json.dumps(row(ref="A2"), indent=None, separators=(" , ", " : "))
    path.write_bytes(f"\ufeff{one}\r\n\r\n   {two}   \r\n".encode())
    with read_file(path) as intake:
        assert [(item.id, item.line) for item in intake.items()] == [("A1", 1), ("A2", 3)]
        assert [entry.line for entry in intake.ignored] == [2]


def test_one_json_list_is_refused_by_name(tmp_path: Path) -> None:
    """A file that is a single JSON list is not JSON Lines."""
    with read_file(lines(tmp_path, "[", '{"ref":"A1"}', "]")) as intake:
        assert only_problem(intake).code == "wrong_format"


def test_missing_and_reserved_names(tmp_path: Path) -> None:
    """The names of the first objects are checked like a header, later ones for reserved names."""
    with read_file(lines(tmp_path, {"Ref": "A1", "amount": "1", "currency": "USD"})) as intake:
        assert only_problem(intake).code == "missing_column"
        assert "did you mean 'Ref'" in only_problem(intake).message
    with read_file(lines(tmp_path, row(), row(ref="A2", key="x"))) as intake:
        assert only_problem(intake).code == "reserved_column"


def test_calls_need_no_amount(tmp_path: Path) -> None:
    """A ``call`` has money where the row has an amount; a half-stated one is refused."""
    rows = [
        {"ref": "A1"},
        row(ref="A2"),
        row(ref="A3", amount=None, currency=None),
        row(ref="A4", amount="5", currency=""),
    ]
    with read_file(
        lines(tmp_path, *rows, row(ref="A5", amount="full"), row(ref="A6", amount="")), operation="call"
    ) as intake:
        assert codes(intake) == {4: "missing_currency", 5: "bad_amount"}
        assert [item.id for item in intake.items()] == ["A1", "A2", "A3", "A6"]
        assert [item.money is None for item in intake.items()] == [True, False, True, True]
    with read_file(lines(tmp_path, {"ref": "A1", "prompt": "x"}), operation="call", id="ref") as intake:
        assert intake.ok
        assert intake.totals == ()


def test_the_same_items_have_the_same_seal_in_every_text_format(tmp_path: Path) -> None:
    """The seal is over what the items are, not over how they were written."""
    (tmp_path / "a.csv").write_text(
        'ref,amount,currency,memo\nA1,12.5,usd,"say ""hi"" \\ é"\nA2,3,EUR,\n', encoding="utf-8"
    )
    rows = [row(amount="12.50", memo='say "hi" \\ é'), row(ref="A2", amount=3, currency="EUR", memo="")]
    with read_file(tmp_path / "a.csv") as first, read_file(lines(tmp_path, *rows)) as second:
        assert first.seal == second.seal
        assert next(iter(first.items())).fields == {"memo": 'say "hi" \\ é'}


def test_deep_nesting_is_refused_before_it_can_break_anything(tmp_path: Path) -> None:
    """Two hundred levels are kept; brackets inside of texts are no levels."""
    deep = {depth: "[" * depth + "]" * depth for depth in (199, 200, 900)}
    rows = [f'{{"ref":"D{depth}","amount":"1","currency":"USD","x":{value}}}' for depth, value in deep.items()]
    text = json.dumps(row(ref="T", x='[{"\\' * 500))
    with read_file(lines(tmp_path, *rows, text)) as intake:
        assert codes(intake) == {2: "bad_json", 3: "bad_json"}
        assert list(amounts(intake)) == ["D199", "T"]


def test_values_are_shown_as_json_shows_them(tmp_path: Path) -> None:
    """true is no float and no True; a list is shown as one."""
    rows = [row(amount=True), row(ref="A2", amount=[1, {"a": None}]), row(ref=None), row(ref={"x": False})]
    with read_file(lines(tmp_path, *rows)) as intake:
        assert [problem.value for problem in intake.problems] == ["true", '[1,{"a":null}]', None, '{"x":false}']
        messages = [problem.message for problem in intake.problems]
        assert "true or false" in messages[0] and "a list" in messages[1] and "an object" in messages[3]
