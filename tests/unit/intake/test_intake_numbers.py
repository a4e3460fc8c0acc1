"""Number formats: proven by the whole file or declared; a doubtful value alone is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from payonce.intake.numbers import NumberFormat, Sign, number_format, sign_of
from tests.unit.intake.intakekit import amounts, codes, read_file

USUAL = {"id": "ref", "amount": "amount", "currency": "currency"}


def rows(tmp_path: Path, *values: str, currency: str = "USD", column: str = "amount") -> Path:
    """A file with these amounts, ids A0, A1 ... from line 2."""
    path = tmp_path / "in.csv"
    body = "".join(f'A{number};"{value}";{currency}\n' for number, value in enumerate(values))
    path.write_text(f"ref;{column};currency\n{body}", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("12", Sign.NOTHING),
        ("12.5", Sign.POINT),
        ("12,50", Sign.COMMA),
        ("1,234", Sign.DOUBTFUL),
        ("1.234", Sign.DOUBTFUL),
        ("-1.234", Sign.DOUBTFUL),
        ("0.123", Sign.POINT),
        ("0,123", Sign.COMMA),
        ("1234.567", Sign.POINT),
        ("1,234.50", Sign.POINT),
        ("1.234,50", Sign.COMMA),
        ("1,234,567", Sign.POINT),
        ("1.234.567", Sign.COMMA),
        ("12,34,567.5", Sign.POINT),
        ("1'234.50", Sign.POINT),
        ("1 234,50", Sign.COMMA),
        ("1 234", Sign.NOTHING),
        ("1,23,4", Sign.NOTHING),
        ("1.2.3", Sign.NOTHING),
        ("full", Sign.NOTHING),
    ],
)
def test_what_one_value_says(text: str, sign: Sign) -> None:
    """Groups have three digits (or two and three): anything else behind a separator is a fraction."""
    assert sign_of(text) is sign


def test_a_doubtful_value_alone_is_refused(tmp_path: Path) -> None:
    """Nothing in the file says what ``1,234`` is; whole numbers beside it prove nothing."""
    for value in ("1,234", "1.234"):
        with read_file(rows(tmp_path, value, "5", "17")) as intake:
            assert codes(intake) == {2: "ambiguous_number"}
            assert "[input] decimal" in next(iter(intake.problems)).message


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (["1,234", "12.50"], ["1234.00", "12.50"]),
        (["1.234", "12,50"], ["1234.00", "12.50"]),
        (["12,50", "-1", "1.234,5"], ["12.50", None, "1234.50"]),
        (["1,234,567", "1,234"], ["1234567.00", "1234.00"]),
        (["1 234,50", "7"], ["1234.50", "7.00"]),
        (["1'234.50", "0.50"], ["1234.50", "0.50"]),
        (["5"] * 5000 + ["1,234", "2,5"], ["5.00"] * 5000 + [None, "2.50"]),
    ],
)
def test_one_clear_value_settles_the_others(tmp_path: Path, values: list[str], wanted: list[str | None]) -> None:
    """Wherever it stands, before or after, near or thousands of rows away."""
    with read_file(rows(tmp_path, *values)) as intake:
        found = {item.id: item.money.text for item in intake.items() if item.money}
        assert found == {f"A{n}": text for n, text in enumerate(wanted) if text is not None}


def test_a_proof_far_behind_settles_the_first_rows(tmp_path: Path) -> None:
    """The first rows suggest nothing, or the wrong thing; the whole file decides."""
    filler = [f"{number}" for number in range(1, 40_000)]
    with read_file(rows(tmp_path, "1.234", *filler, "2,50")) as intake:
        assert next(intake.items()).money is not None
        assert amounts(intake)["A0"] == "1234.00 USD"
        assert intake.ok
    with read_file(rows(tmp_path, "1.500", "1,5", *filler, currency="KWD")) as intake:
        assert amounts(intake)["A0"] == "1500.000 KWD"


def test_contradicting_values_settle_nothing(tmp_path: Path) -> None:
    """Where some rows prove a point and others a comma, the fewer ones and the doubtful ones are refused."""
    with read_file(rows(tmp_path, "12.50", "1,50", "2.50", "1,234")) as intake:
        assert codes(intake) == {3: "mixed_numbers", 5: "ambiguous_number"}
        assert "line 2" in next(iter(intake.problems)).message


def test_declared_formats(tmp_path: Path) -> None:
    """A declared separator leaves no doubt; what does not fit it is refused."""
    with read_file(rows(tmp_path, "1.234", "1,5"), decimal=",", **USUAL) as intake:
        assert amounts(intake) == {"A0": "1234.00 USD", "A1": "1.50 USD"}
    with read_file(
        rows(tmp_path, "1.234", "2,5"), decimal=".", thousands="", currency="currency", id="ref", amount="amount"
    ) as intake:
        assert codes(intake) == {2: "not_representable", 3: "bad_amount"}
    with read_file(rows(tmp_path, "1,234", "1.25"), thousands=",", **USUAL) as intake:
        assert amounts(intake) == {"A0": "1234.00 USD", "A1": "1.25 USD"}
    with read_file(rows(tmp_path, "1\u00a0234,50", "1 234,50"), decimal=",", thousands=" ", **USUAL) as intake:
        assert intake.counts.items == 2


def test_a_declared_group_is_the_only_one() -> None:
    """Grouping is accepted in the right places and by one character throughout."""
    comma = number_format(decimal=".", thousands=",")
    assert comma is not None
    assert [comma.plain(text) for text in ("1,234", "12,34", "1,234,56", "1 234", "01,234", "12,34,567")] == [
        "1234",
        None,
        None,
        None,
        None,
        "1234567",
    ]
    assert NumberFormat(",", ". ").plain("1.234 567") is None
    assert number_format(decimal=None, thousands=" ") is None


@pytest.mark.parametrize(
    "text",
    [
        "$5.00",
        "5.00 EUR",
        "(5.00)",
        "5.00-",
        "+5.00",
        "5.",
        ".5",
        "1e3",
        "٣",
        "５",
        "0x10",
        "1_000",
        "five",
        "--",
        "5.0.0",
    ],
)
def test_anything_else_is_no_amount(tmp_path: Path, text: str) -> None:
    """Symbols, signs, exponents and other scripts' digits are refused, never interpreted."""
    with read_file(rows(tmp_path, text, "1.00")) as intake:
        assert list(codes(intake)) == [2]
        assert intake.counts.items == 1


def test_minor_units_are_whole_numbers(tmp_path: Path) -> None:
    """``1250.0`` went through a float; ``12.50`` is not in minor units at all."""
    with read_file(
        rows(tmp_path, "1250", "1250.0", "12.50", "-3", "0", column="cents"),
        id="ref",
        amount_minor="cents",
        currency="currency",
    ) as intake:
        assert amounts(intake) == {"A0": "12.50 USD"}
        assert list(codes(intake)) == [3, 4, 5, 6]


def test_limits_and_huge_amounts(tmp_path: Path) -> None:
    """The limit of one item is in its own currency; what no integer of 64 bits holds is refused."""
    with read_file(
        rows(tmp_path, "500.00", "500.01", "9" * 25, "9" * 45), max_amount={"USD": 50000, "EUR": 1}
    ) as intake:
        assert codes(intake) == {3: "over_max_amount", 4: "bad_amount", 5: "bad_amount"}
        assert "500.00" in next(iter(intake.problems)).message
