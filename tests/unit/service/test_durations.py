"""Durations, rates and amounts are exact or refused."""

from __future__ import annotations

import pytest

from payonce.core.durations import duration_us
from payonce.core.errors import MoneyError
from payonce.service.durations import amounts_minor, duration_text, rate_per_ks


@pytest.mark.parametrize(
    ("text", "us"), [("20ms", 20_000), ("1.5s", 1_500_000), ("5m", 300_000_000), ("24h", 86_400_000_000), ("0s", 0)]
)
def test_durations(text: str, us: int) -> None:
    """Every unit is exact in microseconds."""
    assert duration_us(text) == us


@pytest.mark.parametrize("text", ["30", "", "-1s", "1 hour", "1.0000001s", "0.5us", "٣s"])
def test_a_duration_without_a_clear_unit_is_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError):
        duration_us(text)


@pytest.mark.parametrize(("text", "per_ks"), [("80/s", 80_000), ("5/m", 83), ("4/h", 1), ("0.5/s", 500)])
def test_rates_are_never_rounded_up(text: str, per_ks: int) -> None:
    """Five a minute is 83.3 in 1,000 seconds: 83 is kept."""
    assert rate_per_ks(text) == per_ks


@pytest.mark.parametrize("text", ["80", "80/d", "0/s", "1/h", "/s"])
def test_bad_rates_are_refused(text: str) -> None:
    """No unit, an unknown one, or a rate too slow to be represented."""
    with pytest.raises(ValueError):
        rate_per_ks(text)


def test_amounts_are_exact() -> None:
    """Each currency has its own exponent; a float, a zero and a fraction of a cent are refused."""
    assert amounts_minor({"usd": "12.50", "JPY": "5800", "KWD": "1.234"}) == {"USD": 1250, "JPY": 5800, "KWD": 1234}
    for wrong in ({"USD": 12.5}, {"USD": "0.00"}, {"USD": 1250}, {"USD": "1.00", "usd": "1.00"}):
        with pytest.raises(ValueError):
            amounts_minor(wrong)
    with pytest.raises(MoneyError):
        amounts_minor({"USD": "0.001"})


@pytest.mark.parametrize(
    ("us", "text"), [(250_000, "250ms"), (12_500_000, "12.5s"), (200_000_000, "3m 20s"), (7_500_000_000, "2h 5m")]
)
def test_durations_for_people(us: int, text: str) -> None:
    """The largest unit that keeps it short."""
    assert duration_text(us) == text
