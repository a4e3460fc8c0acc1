"""Every operating error payonce raises: a stable code, what is wrong, where, and what to do next.

Expected refusals are values, not exceptions; programmer errors assert. What is left lives here. Nothing in this
module may carry a secret: callers pass names of settings and places, never values of credentials.
"""

from __future__ import annotations

from dataclasses import dataclass


class PayonceError(Exception):
    """The base of all operating errors.

    ``code`` is stable and documented; ``hint`` is the next step for a person; ``exit_code`` is what the command
    line ends with (SPEC section 9).
    """

    exit_code = 2

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.code})" + (f"\n  next: {self.hint}" if self.hint else "")


class UsageError(PayonceError):
    """Wrong arguments, a missing file, an unknown batch. Nothing was sent."""


class ConfigError(PayonceError):
    """The batch file cannot be used as it is. Nothing was sent."""


class MoneyError(PayonceError):
    """An amount or a currency that cannot be represented exactly."""


class SealedError(PayonceError):
    """The batch differs from what was sealed: items, account, mode or operation. Nothing was sent."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input, precise enough to fix it: file, line and column are as a text editor shows them."""

    file: str
    line: int | None
    column: str | None
    value: str | None
    code: str
    message: str


class InputError(PayonceError):
    """The input has problems; all of them are in ``problems``. Nothing was sealed and nothing was sent."""

    def __init__(self, message: str, *, problems: tuple[Problem, ...], code: str = "bad_input", hint: str = "") -> None:
        super().__init__(message, code=code, hint=hint)
        self.problems = problems


class LedgerError(PayonceError):
    """The ledger cannot be read or written. No new call may be sent; the run ends with exit code 3."""

    exit_code = 3


class LedgerConflict(LedgerError):
    """The store took a whole transaction back to let another one go on. Nothing of it was written, so the same may be done
    again."""


class LedgerPlaceError(LedgerError):
    """The ledger is not where or what it was: restored from an older copy, copied, or on a network file system."""


class LeaseLost(PayonceError):
    """This worker's lease is over and its items may belong to another; it must stop writing."""

    exit_code = 75
