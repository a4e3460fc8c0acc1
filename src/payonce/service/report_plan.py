"""What planning a batch found: the report that people and programs read before the first call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from payonce.core.errors import Problem
from payonce.core.model import Limits
from payonce.core.money import format_minor
from payonce.service.overlaps import Overlaps

# Only where no rate is configured: what a call to a remote API often takes. The report says that it is a guess.
GUESSED_CALL_S: Final = 0.3


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the input that is no item, and why."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Extremes:
    """The largest and the smallest item of one currency, each with its amount in minor units; the first of equals."""

    largest: tuple[str, int]
    smallest: tuple[str, int]


@dataclass(frozen=True, slots=True)
class Expected:
    """How long the calls will take at least, in seconds, and what that rests on. None: nothing is left to send."""

    seconds: float | None
    basis: str


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A batch before it runs. ``totals`` are in minor units by currency, ``left`` the items still to be settled.

    ``sealed`` says that the ledger holds the batch now; ``new`` that this command sealed it. ``warnings`` are sentences
    that stop nothing, ``checks`` what reading the targets at the provider found (``plan --check``). ``added`` items with
    ``added_totals`` are those of an amendment; ``cost`` is what calls whose price is known only afterwards may cost; ``shared_targets`` says on how many targets several items of it act.
    """

    batch: str
    operation: str
    provider: str
    account: str | None
    sealed: bool
    new: bool
    items: int
    left: int
    totals: Mapping[str, int]
    guarantee: str
    expected: Expected
    rows: int | None = None
    ignored: tuple[Row, ...] = ()
    ignored_count: int = 0
    refused: int = 0
    duplicates: int = 0
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    warnings: tuple[str, ...] = ()
    checks: tuple[Problem, ...] = ()
    checked: int | None = None
    budget: Mapping[str, int] = field(default_factory=dict)
    extremes: Mapping[str, Extremes] = field(default_factory=dict)
    shared_targets: int = 0
    overlaps: Overlaps = field(default_factory=Overlaps)
    problem_codes: Mapping[str, int] = field(default_factory=dict)
    problems_file: str | None = None
    cost: Mapping[str, Any] = field(default_factory=dict)
    added: int = 0
    added_totals: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The JSON contract of ``payonce plan --json``."""
        return {
            "batch": self.batch,
            "sealed": self.sealed,
            "new": self.new,
            "operation": self.operation,
            "provider": self.provider,
            "account": self.account,
            "items": self.items,
            "left": self.left,
            "money": _money(self.totals),
            "largest": {code: _item(found.largest, code) for code, found in sorted(self.extremes.items())},
            "smallest": {code: _item(found.smallest, code) for code, found in sorted(self.extremes.items())},
            "added": self.added,
            "added_money": _money(self.added_totals),
            "rows": self.rows,
            "ignored_rows": [{"line": row.line, "why": row.why} for row in self.ignored],
            "ignored_count": self.ignored_count,
            "refused_rows": self.refused,
            "duplicates": self.duplicates,
            "shared_targets": self.shared_targets,
            "overlaps": self.overlaps.as_json(),
            "problems": problems_json(self.problems),
            "problem_count": self.problem_count,
            "problem_codes": dict(self.problem_codes),
            "problems_file": self.problems_file,
            "guarantee": self.guarantee,
            "expected_seconds": None if self.expected.seconds is None else round(self.expected.seconds, 1),
            "expected_basis": self.expected.basis,
            "cost": dict(self.cost) or None,
            "warnings": list(self.warnings),
            "checked": self.checked,
            "checks": problems_json(self.checks),
        }

    @property
    def over_budget(self) -> dict[str, tuple[int, int]]:
        """Currencies whose total is above their budget: total and budget in minor units. The run will stop there."""
        return {
            code: (total, self.budget[code])
            for code, total in sorted(self.totals.items())
            if code in self.budget and total > self.budget[code]
        }


def _money(totals: Mapping[str, int]) -> dict[str, str]:
    return {code: format_minor(minor, code) for code, minor in sorted(totals.items())}


def _item(found: tuple[str, int], currency: str) -> dict[str, str]:
    return {"item": found[0], "amount": format_minor(found[1], currency)}


def problems_json(problems: tuple[Problem, ...]) -> list[dict[str, Any]]:
    """Problems in the JSON contract's shape."""
    return [
        {"file": p.file, "line": p.line, "column": p.column, "value": p.value, "code": p.code, "message": p.message}
        for p in problems
    ]


def expected(limits: Limits, *, left: int, steps: int = 1) -> Expected:
    """How long ``left`` items of ``steps`` calls each take at the configured rate, else a guess that says so."""
    if left == 0:
        return Expected(None, "nothing is left to send")
    calls = left * steps
    guess = calls * GUESSED_CALL_S / limits.concurrency
    if limits.rate_per_ks is None:
        return Expected(
            guess, f"a guess: no rate is configured; {GUESSED_CALL_S:g} s a call, {limits.concurrency} at once"
        )
    at_rate = calls * 1000 / limits.rate_per_ks
    if guess > at_rate:
        return Expected(
            guess,
            f"a guess: {GUESSED_CALL_S:g} s a call, {limits.concurrency} at once, which is slower than the rate allows",
        )
    return Expected(at_rate, f"at the configured rate of {limits.rate_per_ks / 1000:g} calls a second")
