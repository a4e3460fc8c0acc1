"""One pass over an input with one assumed number format: blocks in, checked items into the spool, a result out."""

from __future__ import annotations

from pathlib import Path

from payonce.intake.amounts import AmountReader
from payonce.intake.block import Block
from payonce.intake.columns import check_mapping
from payonce.intake.duplicates import Duplicates, Shared
from payonce.intake.numbers import Evidence, NumberFormat
from payonce.intake.report import Counts, Fatal, Report
from payonce.intake.result import Intake
from payonce.intake.settings import InputSettings
from payonce.intake.sources import Source, open_source
from payonce.intake.spool import Spool
from payonce.intake.totals import Totals, check_expected, note_sum_rows, totals_of
from payonce.intake.validate import Validator


class Reading:
    """A single pass. ``number`` None: as the first rows suggest, to be judged by ``proven`` at the end.

    ``before`` is the reading whose evidence settled ``number``: the source must not have changed since.
    """

    def __init__(
        self,
        settings: InputSettings,
        report: Report,
        *,
        base_dir: Path,
        operation: str,
        number: NumberFormat | None,
        before: Reading | None = None,
    ) -> None:
        self._settings = settings
        self._report = report
        self._base_dir = base_dir
        self._operation = operation
        self._open = number is None
        self._before = before
        self._amounts = AmountReader(
            number=number or NumberFormat(),
            minor=settings.item.amount is None,
            max_amount=settings.max_amount,
            evidence=before.evidence if before else None,
        )
        self._spool = Spool()
        self._totals = Totals()
        self._shared = Shared(0, ())
        self.columns: tuple[str, ...] = ()
        self.digest = ""
        self._duplicates = Duplicates(
            report, id_column=settings.item.id, targets=settings.item.target not in (None, settings.item.id)
        )

    @property
    def evidence(self) -> Evidence:
        """What the amounts said about the number format."""
        return self._amounts.evidence

    def proven(self) -> NumberFormat | None:
        """The number format that the whole input proves, where it is another than the one assumed and that matters."""
        return self.evidence.settles(self._amounts.number, thousands=self._settings.format.thousands)

    def run(self) -> Intake:
        """Reads everything. Raises OSError where temporary files find no room, and nothing else."""
        finished = False
        try:
            check_mapping(self._settings, self._report, operation=self._operation)
            source = open_source(self._settings, self._report, base_dir=self._base_dir)
            self._take_all(source)
            finished = True
        except Fatal as fatal:
            for problem in fatal.problems:
                self._report.block(problem)
            # Rows that were on their way are not taken.
            self._report.refused = self._report.rows - self._spool.count - len(self._report.ignored)
        self._report.flush()
        if finished:
            self._finish()
        return self._result(finished)

    def _take_all(self, source: Source) -> None:
        validator = Validator(self._settings, self._report, amounts=self._amounts, operation=self._operation)
        for block in source.blocks():
            self.columns = source.columns
            if self._open and block.amounts is not None:
                self._assume(block)
            sound, refused = validator.check(block)
            self._report.flush()
            self._spool.add(sound)
            self._totals.add(sound.minors, sound.currencies, ids=sound.ids, lines=sound.lines)
            self._duplicates.add(sound, refused)
        self.columns = source.columns
        self.digest = source.digest
        validator.finish()
        if self._before is not None and self._before.digest != self.digest:
            raise Fatal(self._report.make("input_changed", "the input was changed while it was read; start again"))

    def _assume(self, block: Block) -> None:
        """Takes the number format that the first rows suggest, which saves most files a second reading."""
        evidence = Evidence()
        for line, value in zip(block.lines, block.amounts or (), strict=True):
            if isinstance(value, str):
                evidence.see(value.strip(), line=line)
        self._amounts.assume(evidence.decide(thousands=self._settings.format.thousands))
        self._open = False

    def _finish(self) -> None:
        """What only all items together show."""
        before = self._spool.count
        self._shared = self._duplicates.resolve(self._spool, on_duplicate=self._settings.on_duplicate)
        if self._spool.count != before:
            self._totals = totals_of(self._spool)
        if self._report.refused and not self._settings.skip_bad_rows:
            return
        if self._spool.count == 0 and not self._report.blocking:
            why = "no row of the input can be used" if self._report.refused else "the input has no items"
            self._report.block(self._report.make("no_items", why))
        note_sum_rows(self._totals.result(), self._report)
        totals = self._totals.sums()
        check_expected(self._settings.expect, items=self._spool.count, totals=totals, report=self._report)

    def _result(self, finished: bool) -> Intake:
        self._duplicates.close()
        self._report.flush()
        report, spool = self._report, self._spool
        for kept in (spool, report.problems, report.ignored):
            kept.written()
        ok = finished and not report.blocking and (self._settings.skip_bad_rows or not report.refused)
        return Intake(
            file=report.file,
            columns=self.columns,
            roles={column: role for role, column in reversed(self._settings.item.roles().items())},
            counts=Counts(report.rows, spool.count, len(report.ignored), report.refused),
            totals=self._totals.result(),
            shared_targets=self._shared,
            source_digest=self.digest if finished else "",
            seal=spool.seal if finished else "",
            ok=ok,
            _report=report,
            _spool=spool,
        )

    def close(self) -> None:
        """Gives the temporary files back."""
        self._duplicates.close()
        self._report.close()
        self._spool.close()
