"""Retry-After in all its forms, and nonsense."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payonce.core.events import from_iso
from payonce.providers.retry_after import Wait, http_date_us, parse_retry_after

CASES = Path(__file__).parents[2] / "data" / "cases" / "retry_after_values.csv"
NOW = from_iso("2025-09-04T10:00:00Z")
S = 1_000_000


def rows() -> list[dict[str, str]]:
    with CASES.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["retry_after"] or "empty")
def test_every_case_of_the_table(row: dict[str, str]) -> None:
    """The wait of each value, or that the own backoff stands, or that the batch had better pause."""
    found = parse_retry_after(row["retry_after"], now_us=from_iso(row["now_utc"]), cap_us=3600 * S)
    match row["want_wait_s"]:
        case "backoff":
            assert found is None
        case "cap_or_pause":
            assert found == Wait(int(row["retry_after"]) * S, over_cap=True)
        case seconds:
            assert found == Wait(int(seconds) * S)


def test_the_servers_own_date_is_the_now_of_a_date() -> None:
    """A clock that is wrong here does not lengthen or shorten the wait."""
    value = "Thu, 04 Sep 2025 10:02:00 GMT"
    wrong_clock = NOW + 86_400 * S
    assert parse_retry_after(value, now_us=wrong_clock) == Wait(0)
    assert parse_retry_after(value, now_us=wrong_clock, date="Thu, 04 Sep 2025 10:00:00 GMT") == Wait(120 * S)
    assert parse_retry_after(value, now_us=NOW, date="nonsense") == Wait(120 * S)


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", "1994-11-06T08:49:37Z"),
        ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z"),
        ("Sun Nov  6 08:49:37 1994", "1994-11-06T08:49:37Z"),
        ("Sat, 31 Dec 2016 23:59:60 GMT", "2016-12-31T23:59:59Z"),
    ],
)
def test_the_three_forms_of_an_http_date(text: str, iso: str) -> None:
    """RFC 9110, section 5.6.7."""
    assert http_date_us(text, now_us=NOW) == from_iso(iso)


@pytest.mark.parametrize(
    "text", ["Thu, 32 Sep 2025 10:02:00 GMT", "Thu, 04 Xyz 2025 10:02:00 GMT", "2025-09-04", "0x10", "١٢"]
)
def test_nonsense_is_nothing(text: str) -> None:
    """Neither a number nor a date."""
    assert parse_retry_after(text, now_us=NOW) is None


@given(st.text(max_size=40))
def test_no_text_is_too_odd(text: str) -> None:
    """It never raises, and a wait is never negative."""
    found = parse_retry_after(text, now_us=NOW)
    assert found is None or found.wait_us >= 0


@given(st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2070, 1, 1)))
def test_dates_are_read_as_they_are_written(moment: datetime) -> None:
    """Round trip through the usual form."""
    whole = moment.replace(microsecond=0)
    assert http_date_us(whole.strftime("%a, %d %b %Y %H:%M:%S GMT"), now_us=NOW) == from_iso(whole.isoformat())
