"""Comparing a batch's lines with a statement: what surrounds ``reconcile.match``, which is pure. Writes nothing.

A statement of another account, currency or time is refused with the reason; it is never matched at zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from payonce.core.model import Batch
from payonce.ledger.protocol import Ledger
from payonce.reconcile.errors import refuse
from payonce.reconcile.match import reconcile
from payonce.reconcile.model import Coverage, LedgerLine, Reconciliation
from payonce.reconcile.pairing import CLOCK_TOLERANCE_US, pair
from payonce.reconcile.statement import Statement
from payonce.service.reconciling_elsewhere import accounted_elsewhere
from payonce.service.reconciling_ledger import ledger_lines, with_keys, with_times


def compare(ledger: Ledger, batch: Batch, statement: Statement) -> Reconciliation:
    """The comparison of a whole batch; writes nothing. Raises StatementError where the statement is not this batch's."""
    return compare_lines(ledger, batch, statement, ledger_lines(ledger, batch))


def compare_lines(
    ledger: Ledger, batch: Batch, statement: Statement, lines: list[LedgerLine], *, clean: int = 0
) -> Reconciliation:
    """The comparison of some lines, ``clean`` pairs having been taken out before."""
    sample = next((key for entry in statement.entries for key in entry.keys), None)
    if sample is not None:
        lines = with_keys(batch, lines, sample)
    # Before anything is paired: what is another batch's must become nobody's second execution, and nobody's first.
    elsewhere = accounted_elsewhere(ledger, batch, lines, statement.entries)
    pairs = pair(lines, statement.entries, Coverage(), apart=elsewhere)
    check_is_ours(batch, lines, statement, matched=len(pairs.entry_of) + clean)
    unexplained = [place for place in range(len(lines)) if place not in pairs.entry_of or place in pairs.extras]
    lines = with_times(ledger, batch.spec.id, lines, unexplained)
    return reconcile(lines, statement.entries, statement.coverage, elsewhere=elsewhere)


def check_is_ours(batch: Batch, lines: Sequence[LedgerLine], statement: Statement, *, matched: int) -> None:
    """Refuses a statement of another account, currency or time; it must never be matched at zero."""
    account = batch.spec.account
    if account is not None and statement.accounts and account not in statement.accounts:
        refuse(
            f"the statement is of account {', '.join(sorted(statement.accounts))}, the batch of {account}",
            code="wrong_account", hint="take the statement of the batch's own account",
        )  # fmt: skip
    committed = [line for line in lines if line.committed]
    if matched or not committed:
        return
    ours = {line.money.currency for line in committed if line.money is not None}
    theirs = {entry.currency for entry in statement.entries}
    if ours and not ours & theirs:
        refuse(
            f"the statement is in {', '.join(sorted(theirs))}, the batch in {', '.join(sorted(ours))}",
            code="wrong_currency", hint="take the statement of the batch's currency, or check [statement] currency",
        )  # fmt: skip
    times = [line.latest_us for line in committed if line.latest_us is not None]
    coverage = statement.coverage
    # These are the times of our answers: the provider's rows are a little earlier, and by another clock.
    before = times and coverage.from_us is not None and max(times) + CLOCK_TOLERANCE_US < coverage.from_us
    after = times and coverage.to_us is not None and min(times) - CLOCK_TOLERANCE_US > coverage.to_us
    if before or after:
        refuse(
            "the statement covers another time than the one in which the batch was executed",
            code="wrong_period",
            hint="take the statement of the time in which the batch ran",
        )
    refuse(
        f"none of the batch's {len(committed)} executed items is in the statement, by reference, key or own reference",
        code="nothing_matches",
        hint="another account, another report, or [statement] names the wrong columns; payonce items shows the references",
    )
