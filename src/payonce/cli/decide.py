"""Commands by which a person decides about items: retry, resolve. Each needs a reason, which goes into the trail."""

from __future__ import annotations

import click

from payonce.cli.common import Common, batch_of, command
from payonce.cli.screen import Screen
from payonce.cli.steer import operator
from payonce.cli.words import some
from payonce.core.errors import UsageError
from payonce.core.model import Item
from payonce.core.money import Money
from payonce.core.states import ItemState
from payonce.service import inspecting
from payonce.service.opening import opened
from payonce.service.operating import Decision
from payonce.service.report import item_json


@command("retry")
@click.argument("batch")
@click.argument("items", nargs=-1, metavar="[ITEM]...")
@click.option("--reason", required=True, help="Why it may succeed now; it goes into the trail.")
@click.pass_obj
def retry(common: Common, batch: str, items: tuple[str, ...], reason: str) -> None:
    """Put refused ITEMs of BATCH (all of them without one named; skipped ones only by name) back to planned.

    Each gets a new generation of its key if the old one may have been used. The next run sends them.
    """
    screen = Screen(common)
    where = batch_of(common, batch)
    with opened(where.url) as ledger:
        moved = operator(ledger).retry(where.batch, items, reason=_reason(reason))
    if common.json:
        screen.document({"batch": where.batch, "retried": [item_json(item) for item in moved]})
        return
    screen.line(f"{some(len(moved), 'item')} planned again" + ("; the next run sends them" if moved else ""))


@command("resolve")
@click.argument("batch")
@click.argument("item")
@click.option(
    "--as", "state", required=True, type=click.Choice(["committed", "refused", "planned"]), help="What became of it."
)
@click.option("--reason", required=True, help="How you know; it goes into the trail.")
@click.option("--reference", help="The provider's reference (needed for committed).")
@click.option("--amount", metavar="A", help="What was billed, in major units (needed for committed).")
@click.option("--currency", metavar="CODE", help="The billed currency, where the item has no amount of its own.")
@click.option("--other-amount", is_flag=True, help="The billed amount is really another one than was asked for.")
@click.pass_obj
def resolve(
    common: Common,
    batch: str,
    item: str,
    state: str,
    reason: str,
    reference: str | None,
    amount: str | None,
    currency: str | None,
    other_amount: bool,
) -> None:
    """Say what became of an unknown ITEM of BATCH.

    committed: it was executed (with --reference and --amount). refused: it was not and will not be. planned: it was
    not, and may be sent again under a new key; if it was executed after all, it is paid twice: be sure.
    """
    screen = Screen(common)
    where = batch_of(common, batch)
    with opened(where.url) as ledger:
        found = inspecting.find_item(ledger, where.batch, item)
        decision = Decision(
            ItemState(state),
            _reason(reason),
            reference=_reference(state, reference),
            billed=_billed(found, state=state, amount=amount, currency=currency),
            other_amount=other_amount,
        )
        now = operator(ledger).resolve(where.batch, item, decision)
    if decision.billed and found.money and decision.billed != found.money:
        screen.warn(f"billed {decision.billed}, asked {found.money}: an amount_mismatch was opened")
    if common.json:
        screen.document({"batch": where.batch, "item": item_json(now)})
    else:
        screen.line(f"{now.id} is {now.state.value}")


def _reason(text: str) -> str:
    if not text.strip():
        raise UsageError("the reason is empty", code="no_reason", hint='say it in a few words: --reason "..."')
    return text.strip()


def _reference(state: str, reference: str | None) -> str | None:
    if state == "committed" and not (reference or "").strip():
        raise UsageError(
            "an executed item needs the provider's reference",
            code="reference_needed",
            hint="--reference REF, as the provider's dashboard or statement shows it",
        )
    if state != "committed" and reference:
        raise UsageError(
            f"--reference belongs to --as committed, not to {state}", code="usage", hint="leave it out, or check --as"
        )
    return reference


def _billed(item: Item, *, state: str, amount: str | None, currency: str | None) -> Money | None:
    if state != "committed":
        if amount or currency:
            raise UsageError(
                f"--amount belongs to --as committed, not to {state}", code="usage", hint="leave it out, or check --as"
            )
        return None
    code = currency or (item.money.currency if item.money else None)
    if amount is None or code is None:
        raise UsageError(
            "an executed item needs the amount that was billed",
            code="amount_needed",
            hint=f"--amount, as the provider billed it; {item.money} was asked for"
            if item.money
            else "--amount and --currency, as the provider billed it",
        )
    return Money(amount, code)
