"""An input that was read: what it holds, what is wrong with it, and its items, ready to be sealed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType

from payonce.core.errors import InputError, Problem
from payonce.core.model import NewItem, PlainColumns
from payonce.intake.canonical import Record
from payonce.intake.duplicates import Shared
from payonce.intake.report import Counts, Ignored, Log, Note, Report
from payonce.intake.spool import Spool
from payonce.intake.totals import CurrencyTotal

SHOWN = 20


@dataclass(frozen=True, slots=True)
class Intake:
    """The result of one reading. Holds temporary files: use it as a context manager, or close it.

    ``columns`` in the input's order; ``roles`` says which column is the id, target, amount ... ; ``source_digest`` is the
    SHA-256 of the bytes read, ``seal`` of the normalised items in order. Both are empty where reading could not finish.
    """

    file: str
    columns: tuple[str, ...]
    roles: Mapping[str, str]
    counts: Counts
    totals: tuple[CurrencyTotal, ...]
    shared_targets: Shared
    source_digest: str
    seal: str
    ok: bool
    _report: Report
    _spool: Spool

    @property
    def problems(self) -> Log[Problem]:
        """All problems, in the order in which they were found."""
        return self._report.problems

    @property
    def problem_codes(self) -> Mapping[str, int]:
        """How many problems there are of each code, the most frequent first."""
        return dict(self._report.codes.most_common())

    @property
    def ignored(self) -> Log[Ignored]:
        """All rows that are no items: above the header, blank, allowed duplicates."""
        return self._report.ignored

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is worth knowing though it stops nothing."""
        return self._report.notes

    def items(self) -> Iterator[NewItem]:
        """The items in input order. May be called again; one iteration at a time."""
        return self._spool.items()

    def records(self) -> Iterator[tuple[list[Record], list[int]]]:
        """The same items as plain records, some thousand at a time with their lines."""
        return self._spool.records()

    def rows(self) -> Iterator[PlainColumns]:
        """The same items as a store's rows take them, some thousand at a time: the quick way into a store."""
        return self._spool.rows()

    def raise_if_bad(self) -> None:
        """Raises InputError, with the first problems, unless the input may be sealed (``ok``)."""
        if self.ok:
            return
        found = len(self.problems)
        first = self.problems.first(SHOWN)
        where = f"{self.file}, line {first[0].line}" if first[0].line else self.file
        more = f" (and {found - 1} more)" if found > 1 else ""
        raise InputError(
            f"{where}: {first[0].message}{more}",
            problems=first,
            hint="correct the input and run the same command again; nothing was sent",
        )

    def close(self) -> None:
        """Gives the temporary files back."""
        self._report.close()
        self._spool.close()

    def __enter__(self) -> Intake:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
