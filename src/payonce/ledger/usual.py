"""What happens to nearly every item, written out: a first call under the item's own amount, and its execution over exactly
that. Called by the rules only.

Each case does what the rules do for it, with the same event, byte for byte, and nothing for anything else: whatever is
unusual about the item, the command, the batch or its worker is left to the rules, which know everything. That both come to
the same is tested with random histories.
"""

from __future__ import annotations

from typing import Any, Final

from payonce.core.commands import Change, Intend
from payonce.core.money import format_minor
from payonce.core.states import BatchState, ItemEvent, ItemState, Settlement
from payonce.ledger import costs
from payonce.ledger.desk import Desk
from payonce.ledger.forms import ANSWERS, Form, execution, first_call
from payonce.ledger.requests import request_digest
from payonce.ledger.rows import ItemRow, OpenRow

_PLANNED, _PENDING, _COMMITTED = ItemState.PLANNED, ItemState.PENDING, ItemState.COMMITTED
_RUNNING, _NONE = BatchState.RUNNING, Settlement.NONE
_INTENT, _COMMIT = ItemEvent.INTENT, ItemEvent.COMMIT
_SAFE: Final = 2**53


class Usual:
    """The usual cases of one worker's commands in one transaction. ``fence`` is that of a worker that may send.

    The tallies follow with ``settle``, which comes before anything else looks at them."""

    __slots__ = ("_begun", "_committed", "_desk", "_fence", "_forms")

    def __init__(self, desk: Desk, fence: int) -> None:
        self._desk = desk
        self._fence = fence
        # By currency: how many items, and over how many minor units.
        self._begun: dict[str, list[int]] = {}
        self._committed: dict[str, list[int]] = {}
        self._forms: dict[tuple[Any, ...], Form] = {}

    def settle(self) -> None:
        """Brings the tallies up to date."""
        if self._begun:
            self._desk.transfer(_PLANNED, _PENDING, self._begun)
            self._begun = {}
        if self._committed:
            self._desk.transfer(_PENDING, _COMMITTED, self._committed)
            self._committed = {}

    def intend(self, row: ItemRow, command: Intend) -> bool:
        """A first call of a planned item that nothing stands in the way of; False where that is not so."""
        desk, n, minor, currency, key = self._desk, row.n, row.minor, row.currency, command.key
        batch, log, by = desk.batch, desk.log, command.send_by_us
        us = log.now_us
        if (
            row.state is not _PLANNED
            or command.event is not _INTENT
            or command.generation != row.generation
            or command.step != row.step
            or batch.state is not _RUNNING
            or us > by  # a clock was set
            or n in desk.opens
            or command.reserve is not None
            or command.data
            or command.payloads
            or minor is None
            or currency is None
            or (batch.targets and desk.holders.get(row.target) is not None)
            or self._over_budget(minor, currency)
        ):
            return False
        fence, target, request = self._fence, row.target, command.request
        until, first, digest = command.deadline_us, row.first_sent_us or us, request_digest(request)
        row.state = _PENDING
        row.code = row.message = None
        row.updated_us = us
        row.attempts += 1
        batch.sent += 1
        held = OpenRow(
            n,
            target,
            fence,
            key,
            digest,
            first,
            us,
            by,
            until,
            hold_minor=minor,
            hold_currency=currency,
            request=request,
        )
        desk.begin(row, held)
        total = self._begun.get(currency) or self._begun.setdefault(currency, [0, 0])
        total[0] += 1
        total[1] += minor
        kind = currency, row.attempts, row.generation, row.step
        keyed = key is not None
        form = self._forms.get((kind, keyed))
        if form is None:
            form = self._forms[kind, keyed] = first_call(batch.id, fence, *kind, keyed=keyed)
        free = (row.id,) if key is None else (row.id, key)
        log.say(form, (format_minor(minor, currency), log.at, *free, digest.hex()), free, batch.number, n)
        return True

    def _over_budget(self, minor: int, currency: str) -> bool:
        if not self._desk.limits.get("budget"):
            return False
        self.settle()
        return costs.over_budget(self._desk, None, minor, currency)

    def commit(self, row: ItemRow, change: Change) -> bool:
        """An execution over the amount asked, with the usual evidence; False where that is not so."""
        desk, held, data, settlement = self._desk, self._desk.opens.get(row.n), change.data, change.settlement or _NONE
        texts = ANSWERS.get(tuple(data))
        if held is None or texts is None or not self._is_usual(row, held, change):
            return False
        status, said = data.get("status"), [data[name] for name in texts]
        if ("status" in data and not _is_whole(status)) or not _is_ascii(said):
            return False
        batch, log, minor, currency, reference = desk.batch, desk.log, row.minor, row.currency, change.reference
        desk.commit(row)
        row.state = _COMMITTED
        row.updated_us = log.now_us
        row.reference = reference
        row.settlement = settlement
        assert minor is not None and currency is not None and reference is not None  # of the usual
        row.billed_minor, row.billed_currency = minor, currency
        row.code = row.message = None
        batch.consecutive = 0
        total = self._committed.get(currency) or self._committed.setdefault(currency, [0, 0])
        total[0] += 1
        total[1] += minor
        kind = currency, row.attempts, row.generation, row.step, settlement, status, texts
        key = held.key
        keyed = key is not None
        form = self._forms.get((kind, keyed))
        if form is None:
            form = self._forms[kind, keyed] = execution(batch.id, self._fence, *kind, keyed=keyed)
        amount = format_minor(minor, currency)
        free = (*said, row.id, reference) if key is None else (*said, row.id, key, reference)
        log.say(form, (amount, log.at, amount, *free), free, batch.number, row.n)
        return True

    def _is_usual(self, row: ItemRow, held: OpenRow, change: Change) -> bool:
        """Whether a change says that the very amount asked was executed under the open intent, and nothing else."""
        billed = change.billed
        return not (
            change.event is not _COMMIT
            or row.state is not _PENDING
            or held.fence != self._fence
            or held.flags
            or not change.reference
            or row.minor is None
            or row.currency is None
            or held.hold_minor != row.minor
            or held.hold_currency != row.currency
            or (billed is not None and (billed.minor != row.minor or billed.currency != row.currency))
            or change.code is not None
            or change.message
            or change.output is not None
            or change.kept
            or change.carry is not None
            or change.generation is not None
            or change.findings
            or change.stop is not None
            or change.payloads
            or change.spent
            or change.lookups
            or change.rate_limited
            or change.not_before_us
            or change.retry_at_us
        )


def _is_whole(status: object) -> bool:
    """Whether an answer's status is a number as the trail may hold it."""
    return type(status) is int and -_SAFE < status < _SAFE


def _is_ascii(texts: list[str]) -> bool:
    """Whether texts of somebody else are texts at all, of ASCII alone."""
    try:
        return "".join(texts).isascii()
    except TypeError:
        return False
