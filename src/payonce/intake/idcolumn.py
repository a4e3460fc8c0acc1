"""Checks a whole column of ids or targets: the odd ones are found by a few fast tests, then looked at one by one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from payonce.intake.ids import LOST, MAX_LENGTH, IdFault, fault_of, like_a_number, lost_digits, suspects, trimmed
from payonce.intake.report import Report
from payonce.intake.shown import Fault, kind_of, shown

_FLOAT = IdFault(
    "float_id",
    "is stored as a number with decimals, which leading zeros and long ids do not survive; store ids as text (in a "
    "spreadsheet: format the column as Text and enter them again, or save it as CSV)",
)
_NO_VALUE = IdFault("missing_id", "is missing; every row needs one")


class IdColumn:
    """One column of ids. Counts the long numbers, and those among them that may have lost their last digits."""

    def __init__(self, column: str, report: Report, *, role: str) -> None:
        self.column = column
        self._report = report
        self._role = role
        self.long_numbers = 0
        self.lost = 0
        self.first_lost: tuple[int, str] | None = None

    def check(self, values: Sequence[Any], lines: Sequence[int], *, typed: bool) -> tuple[Sequence[str], list[int]]:
        """The ids without outer blanks, and the places of those that cannot be used (problems are reported).

        A place that cannot be used holds some text or other.
        """
        bad: list[int] = []
        texts: Sequence[str] = self._texts(values, lines, bad) if typed else values
        joined = "".join(texts)
        if not joined.isprintable() or " " in joined:
            texts = self._trimmed(texts, lines)
            joined = "".join(texts)
        refused = set(bad)
        for place in self._odd(texts, joined):
            if place not in refused:
                self._look(texts[place], lines[place], place, bad)
        return texts, sorted(bad)

    def _texts(self, values: Sequence[Any], lines: Sequence[int], bad: list[int]) -> list[str]:
        texts: list[str] = []
        for place, value in enumerate(values):
            made = text_of(value)
            if isinstance(made, IdFault):
                self._refuse(made, shown(value), lines[place], place, bad)
                made = "?"
            texts.append(made)
        return texts

    def _trimmed(self, texts: Sequence[str], lines: Sequence[int]) -> list[str]:
        bare = list(map(trimmed, texts))
        if bare != list(texts):
            changed = [place for place, text in enumerate(texts) if text != bare[place] and bare[place]]
            if changed:
                self._report.note(
                    f"trimmed_{self._role}",
                    f"blanks around the {self._role} in column {self.column!r} were left out",
                    line=lines[changed[0]],
                    count=len(changed),
                )
        return bare

    def _odd(self, texts: Sequence[str], joined: str) -> Iterator[int]:
        """The places worth a closer look; none in a column of ids like most are."""
        lost = not joined.isascii() and LOST in joined
        if lost or "" in texts or not joined.isprintable() or max(map(len, texts)) > MAX_LENGTH:
            return iter(range(len(texts)))
        if joined.isascii() and joined.isdigit():
            return self._long(texts)
        return suspects(texts)

    def _long(self, texts: Sequence[str]) -> Iterator[int]:
        return (place for place, text in enumerate(texts) if len(text) > 15)

    def _look(self, text: str, line: int, place: int, bad: list[int]) -> None:
        fault = fault_of(text)
        if fault is not None:
            self._refuse(fault, text, line, place, bad)
            return
        if len(text) > 15 and text.isascii() and text.isdigit():
            self._count_long(text, line)
        elif like_a_number(text):
            self._report.note(
                f"numberlike_{self._role}",
                f"column {self.column!r} holds texts such as {text!r}; they are kept exactly, but a spreadsheet would "
                "turn them into numbers",
                line=line,
            )
        elif not text.isprintable():
            self._report.note(
                f"invisible_{self._role}", f"column {self.column!r} holds invisible or unusual characters", line=line
            )

    def _count_long(self, text: str, line: int) -> None:
        self.long_numbers += 1
        if lost_digits(text):
            self.lost += 1
            if self.first_lost is None:
                self.first_lost = (line, text)

    def _refuse(self, fault: IdFault, value: str | None, line: int, place: int, bad: list[int]) -> None:
        bad.append(place)
        code = fault.code if self._role == "id" else fault.code.replace("_id", f"_{self._role}")
        message = f"the {self._role} {fault.message}"
        self._report.problem(code, message, line=line, column=self.column, value=value)

    def finish(self) -> None:
        """What only all ids together show: long numbers that all lost their last digits are no accident."""
        if self.first_lost is None:
            return
        line, text = self.first_lost
        if self.lost >= 3 and self.lost == self.long_numbers:
            self._report.block(
                self._report.make(
                    f"mangled_{self._role}",
                    f"all {self.lost} of the {self._role}s with more than 15 digits end in zeros from the 16th digit on: a "
                    "spreadsheet lost their last digits; export the column as text",
                    line=line,
                    column=self.column,
                    value=text,
                )
            )
        else:
            self._report.note(
                f"round_{self._role}",
                f"{text!r} in column {self.column!r} ends in zeros from the 16th digit on, as a spreadsheet leaves long "
                "numbers; check it",
                line=line,
                count=self.lost,
            )


def text_of(value: Any) -> str | IdFault:
    """An id that a typed source holds, as text: whole numbers in full, nothing that was a float or a date."""
    match value:
        case str():
            return value
        case None:
            return _NO_VALUE
        case bool():
            return IdFault("bad_id", "is true or false, no id")
        case Fault():
            return IdFault("mangled_id", f"is {value.why}")
        case int():
            return str(value)
        case float():
            return _FLOAT
        case Decimal() if value.is_finite() and value.as_tuple().exponent == 0:
            return format(value, "f")
        case Decimal():
            return _FLOAT
        case uuid.UUID():
            return str(value)
        case _:
            return IdFault("bad_id", f"is {kind_of(value)}, no text; store ids as text")
