"""What an operator may do to a batch or an item: pause, resume, cancel, retry, resolve.

Each is a change of the ledger with who did it and why; none calls a provider. They take effect on a running process,
which learns of them from the ledger. Nothing here can make an item be sent twice: an item goes back to planned only from
refused, skipped or unknown, by a person, with a new generation of its key wherever the old one may have been used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from payonce.core.commands import BatchCommand, Change, Control, Landed
from payonce.core.errors import UsageError
from payonce.core.model import Actor, Batch, Finding, Item
from payonce.core.money import Money
from payonce.core.preflight import ACTED_OUTSIDE
from payonce.core.states import BatchState, ItemEvent, ItemState
from payonce.core.wording import some
from payonce.ledger.protocol import Ledger
from payonce.service.inspecting import find_batch, find_item, items

OPERATOR_CODE = "operator"
_RETRYABLE = (ItemState.REFUSED, ItemState.SKIPPED)


@dataclass(frozen=True, slots=True)
class Operator:
    """A ledger and who acts on it."""

    ledger: Ledger
    actor: Actor

    def pause(self, batch: str, *, reason: str | None) -> Batch:
        """No new call from now on; calls in flight are awaited. Raises UsageError where the batch is over."""
        find_batch(self.ledger, batch)
        return self.ledger.control(batch, Control(BatchCommand.PAUSE, reason=reason), actor=self.actor)

    def resume(self, batch: str, *, reason: str | None) -> Batch:
        """A paused or stopped batch may run again; a running process goes on, otherwise the next start does.

        Raises UsageError without a reason where the stop holds: a person has to say what was found out.
        """
        found = find_batch(self.ledger, batch)
        if found.state is not BatchState.PAUSED and not reason and found.held:
            raise UsageError(
                f"batch {batch!r} was stopped: {found.reason or found.reason_code or 'no reason recorded'}",
                code="no_reason",
                hint='say what has changed since: --reason "..."',
            )
        return self.ledger.control(batch, Control(BatchCommand.RESUME, reason=reason), actor=self.actor)

    def cancel(self, batch: str, *, reason: str | None = None) -> Batch:
        """What is still planned will never be sent and becomes skipped; what is pending is still resolved by a run."""
        find_batch(self.ledger, batch)
        command = Control(BatchCommand.CANCEL, reason=reason)
        found = self.ledger.control(batch, command, actor=self.actor)
        # The first transaction ends every sending; the items of a large batch are skipped in several.
        before, left = None, self._planned(batch)
        while left and left != before:
            found = self.ledger.control(batch, command, actor=self.actor)
            before, left = left, self._planned(batch)
        return found

    def _planned(self, batch: str) -> int:
        return self.ledger.status(batch).count(ItemState.PLANNED)

    def retry(self, batch: str, item_ids: Sequence[str], *, reason: str) -> tuple[Item, ...]:
        """Puts refused or skipped items back to planned; without ids, every refused one.

        All named items are checked before the first is changed. Raises UsageError where one is in another state, or
        the batch was cancelled. Returns the items as they are now.
        """
        found = find_batch(self.ledger, batch)
        if found.state is BatchState.CANCELLED:
            raise UsageError(
                f"batch {batch!r} was cancelled and sends nothing any more",
                code="batch_over",
                hint="put the items into a new batch",
            )
        chosen: Iterable[Item] = (
            self._named(batch, item_ids) if item_ids else tuple(items(self.ledger, batch, states=[ItemState.REFUSED]))
        )
        return tuple(self._retry(batch, item, reason, named=bool(item_ids)) for item in chosen)

    def resolve(self, batch: str, item_id: str, decision: Decision) -> Item:
        """Says what became of an unknown item, on an operator's word, which goes into the trail.

        Raises UsageError where the item is not unknown, was billed another amount than asked and the decision does not
        say that this is meant, another item is committed with the reference, or an item of several calls is to be planned
        again that cannot go on where it stopped. ``planned`` gives the item a new generation: the person vouches that
        nothing was executed under the old key.
        """
        item = find_item(self.ledger, batch, item_id)
        if item.state is not ItemState.UNKNOWN:
            raise UsageError(
                f"item {item_id!r} is {item.state}, and only unknown items are resolved by hand",
                code="wrong_state",
                hint=_instead(batch, item),
            )
        _check_amount(item, decision)
        if decision.state is ItemState.PLANNED:
            _check_steps(item, find_batch(self.ledger, batch))
        self._check_reference(batch, item, decision)
        self._operate(batch, item, _resolution(item, decision), reason=decision.reason)
        return find_item(self.ledger, batch, item_id)

    def _check_reference(self, batch: str, item: Item, decision: Decision) -> None:
        """One execution settles one item: a reference that another one has would leave this one without any."""
        if decision.reference is None:
            return
        committed = items(self.ledger, batch, states=[ItemState.COMMITTED])
        other = next((one for one in committed if one.reference == decision.reference and one.id != item.id), None)
        if other is not None:
            raise UsageError(
                f"{decision.reference!r} is the reference of item {other.id!r} already; nothing was written",
                code="reference_taken",
                hint=f"look at both: payonce show {batch} {other.id}; one execution settles one item",
            )

    def _named(self, batch: str, item_ids: Sequence[str]) -> tuple[Item, ...]:
        chosen = tuple(find_item(self.ledger, batch, item_id) for item_id in dict.fromkeys(item_ids))
        for item in chosen:
            if item.state not in _RETRYABLE:
                raise UsageError(
                    f"item {item.id!r} is {item.state}; only refused and skipped items can be retried",
                    code="wrong_state",
                    hint=_instead(batch, item),
                )
        return chosen

    def _retry(self, batch: str, item: Item, reason: str, *, named: bool) -> Item:
        # The ledger gives a new generation where the key was used: under the old one the provider could answer from
        # what it remembers.
        # Whoever names an item whose target was acted on outside the ledger has seen that: the code stays, and the read
        # before the call holds it no more. One that comes back among all refused ones is looked at again.
        seen = named and item.code == ACTED_OUTSIDE
        change = Change(
            item.n,
            ItemEvent.RETRY,
            code=ACTED_OUTSIDE if seen else None,
            message=f"allowed: {reason}" if seen else None,
        )
        self._operate(batch, item, change, reason=reason)
        return find_item(self.ledger, batch, item.id)

    def _operate(self, batch: str, item: Item, change: Change, *, reason: str) -> None:
        landed = self.ledger.operate(batch, item.id, [change], actor=self.actor, reason=reason)
        if landed is not Landed.LANDED:
            raise UsageError(
                f"item {item.id!r} changed meanwhile or belongs to a running process; nothing was written ({landed})",
                code="item_moved",
                hint=f"look again: payonce show {batch} {item.id}; if a process works on it, end that one first",
            )


@dataclass(frozen=True, slots=True)
class Decision:
    """What an operator says became of an unknown item. ``reference`` and ``billed`` belong to ``committed``;
    ``other_amount`` says that the billed amount is meant to differ from the one asked."""

    state: ItemState
    reason: str
    reference: str | None = None
    billed: Money | None = None
    other_amount: bool = False


def _check_amount(item: Item, decision: Decision) -> None:
    """A mistyped amount would stand in the ledger for good: one that differs needs a word of its own."""
    if item.money is None or decision.billed is None or decision.billed == item.money or decision.other_amount:
        return
    raise UsageError(
        f"item {item.id!r} asked for {item.money}, not {decision.billed}; nothing was written",
        code="amount_differs",
        hint="if the provider really billed that, add --other-amount: the difference becomes a finding",
    )


def _check_steps(item: Item, batch: Batch) -> None:
    """An item of several calls goes on with the call in doubt: not in a batch that sends nothing any more, and not where an
    answer has shown that this very call was executed."""
    shown = item.carry.get(f"step_{item.step}")
    if shown is not None:
        why = f"its call {item.step + 1} was executed as {shown}, and would be made again"
    elif item.step and batch.state is BatchState.CANCELLED:
        why = f"{some(item.step, 'call')} of it {'was' if item.step == 1 else 'were'} executed, and a cancelled batch sends nothing any more"
    else:
        return
    raise UsageError(
        f"item {item.id!r} cannot be planned again: {why}; nothing was written",
        code="half_done",
        hint="finish it at the provider, then --as committed; or undo what was executed, then --as refused",
    )


def _resolution(item: Item, decision: Decision) -> Change:
    evidence: dict[str, Any] = {"by": OPERATOR_CODE}
    match decision.state:
        case ItemState.COMMITTED:
            return Change(
                item.n,
                ItemEvent.COMMIT,
                data=evidence,
                reference=decision.reference,
                billed=decision.billed,
                findings=_mismatch(item, decision),
            )
        case ItemState.REFUSED:
            return Change(item.n, ItemEvent.REFUSE, data=evidence, code=OPERATOR_CODE, message=decision.reason)
        case ItemState.PLANNED:
            return Change(item.n, ItemEvent.NOT_EXECUTED, data=evidence, generation=item.generation + 1)
        case _:
            raise AssertionError(f"an item cannot be resolved as {decision.state}")


def _mismatch(item: Item, decision: Decision) -> tuple[Finding, ...]:
    """The discrepancy that a billed amount other than the one asked for is, however it became known."""
    if item.money is None or decision.billed is None or decision.billed == item.money:
        return ()
    data = {"asked": str(item.money), "billed": str(decision.billed), "reference": decision.reference}
    return (Finding("amount_mismatch", item.id, data),)


def _instead(batch: str, item: Item) -> str:
    match item.state:
        case ItemState.UNKNOWN:
            return f"payonce resolve {batch} {item.id} --as committed|refused|planned --reason ..."
        case ItemState.REFUSED | ItemState.SKIPPED:
            return f"payonce retry {batch} {item.id} --reason ..."
        case ItemState.COMMITTED:
            return "it was executed; nothing is left to do"
        case _:
            return "a run settles it: payonce run BATCH.toml"
