"""Reads an execution out of an answer: its reference, what was billed, what to keep. Never guesses an amount.

What is read here is believed: an answer that contradicts the call it answers is Unsure, and so is one that names an
amount which cannot be read exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from payonce.core.errors import ConfigError
from payonce.core.model import Item
from payonce.core.money import exponent
from payonce.core.outcome import Executed, Refused
from payonce.core.states import Settlement
from payonce.providers import answers_values as values
from payonce.providers.answers_paths import Path, optional
from payonce.providers.http_price import Cost, NoPrice, Price, exact_of, rounded
from payonce.providers.settings import CallTable, Unit
from payonce.providers.settings_values import bad_setting
from payonce.providers.templates import Context, Names, Template
from payonce.providers.transport import Answer


class Unsure(Exception):
    """The answer does not establish an execution. ``final``: asking again cannot make it clearer."""

    def __init__(self, code: str, message: str, *, final: bool = False, reference: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.final = final
        self.reference = reference


def cost_of(raw: Any, *, unit: Unit, currency: str, rounding: str | None) -> Cost:
    """An amount of an answer; one finer than its currency only where a rounding is declared. Raises ValueError."""
    if rounding is None:
        money = values.amount(raw, unit=unit, currency=currency)
        return Cost(money, Decimal(money.text))
    code = values.code_of(currency)
    exact = exact_of(raw)
    return rounded(exact if unit == "major" else exact.scaleb(-exponent(code)), code, rounding)


class StatusMap:
    """What a provider's own status words mean for the money. A word that is not listed means that it is pending."""

    __slots__ = ("_map", "path")

    def __init__(self, status: str | None, *, pending: list[str], succeeded: list[str], failed: list[str], place: str):
        self.path = optional(status, place=f"{place} status")
        listed = [*pending, *succeeded, *failed]
        if listed and self.path is None:
            raise bad_setting(f"{place} lists statuses but not where the status is", hint='add status = "status"')
        if len(set(listed)) != len(listed):
            raise bad_setting(f"{place} lists a status twice", hint="each status has one meaning")
        self._map = (
            dict.fromkeys(pending, Settlement.PENDING)
            | dict.fromkeys(succeeded, Settlement.SUCCEEDED)
            | dict.fromkeys(failed, Settlement.FAILED)
        )

    @property
    def settles_later(self) -> bool:
        """Whether an execution may be confirmed long before its money has arrived."""
        return Settlement.PENDING in self._map.values()

    def of(self, tree: Any, answer: Answer) -> tuple[Settlement, str]:
        """The settlement and the provider's word for it. Raises PathError."""
        word = values.text(self.path.find(tree, answer)) if self.path else None
        if word is None:
            return Settlement.NONE, ""
        known = self._map.get(word)
        if known is None:
            known = Settlement.PENDING if self.settles_later else Settlement.NONE
        return known, word


class Kept:
    """Named parts of an answer to keep."""

    __slots__ = ("_paths",)

    def __init__(self, table: Mapping[str, str], *, place: str) -> None:
        for name in table:
            if name.startswith("$"):
                raise bad_setting(f"{place} keep.{name}: names with a $ are payonce's own", hint="choose another name")
        self._paths = {name: Path(text, place=f"{place} keep.{name}") for name, text in table.items()}

    def of(self, tree: Any, answer: Answer) -> dict[str, Any]:
        """The parts that are there. Raises PathError."""
        found = {name: values.jsonable(path.find(tree, answer)) for name, path in self._paths.items()}
        return {name: value for name, value in found.items() if value is not None}


class ExecutionReader:
    """How the answer to a call shows an execution: the expressions of ``[provider.call]``, compiled."""

    def __init__(self, table: CallTable, *, names: Names, returns_output: bool, price: Price | None = None) -> None:
        place = "[provider.call]"
        self._reference = optional(table.reference, place=f"{place} reference")
        self._own = (
            Template(table.reference_template, place=f"{place} reference_template", names=names)
            if table.reference_template
            else None
        )
        if self._reference is None and self._own is None:
            raise bad_setting(
                f"{place} does not say where the answer's reference is",
                hint='add reference = "id" (a JMESPath), or reference_template = "{id}" if the API names none',
            )
        self._billed = optional(table.billed, place=f"{place} billed")
        self._unit = table.billed_unit
        self._currency = optional(table.billed_currency, place=f"{place} billed_currency")
        self._rounding = table.billed_rounding
        self._price = price
        self._kept = Kept(table.keep, place=place)
        output = table.output if table.output is not None else ("@" if returns_output else None)
        self._output = optional(output, place=f"{place} output")
        self._echo = tuple(
            (
                Template(f"{{{'id' if name == 'own_reference' else name}}}", place=f"{place} echo.{name}", names=names),
                Path(text, place=f"{place} echo.{name}"),
            )
            for name, text in table.echo.items()
        )
        self.status = StatusMap(
            table.status,
            pending=table.status_pending,
            succeeded=table.status_succeeded,
            failed=table.status_failed,
            place=place,
        )

    @property
    def templates(self) -> tuple[Template, ...]:
        """Its templates, for checking their placeholders."""
        return (*((self._own,) if self._own else ()), *(template for template, _ in self._echo))

    def named(self, tree: Any) -> str | None:
        """The reference that a body shows, whatever else it says; None where it shows none."""
        return values.reference(self._reference.find(tree)) if self._reference else None

    def needs_currency(self, item: Item) -> bool:
        """Whether an answer's amount would have no currency: the item has none and no expression tells it."""
        return self._billed is not None and self._currency is None and item.money is None

    def executed(
        self, tree: Any, answer: Answer, *, context: Context, reference: str | None, ruled: bool
    ) -> Executed | Refused:
        """The execution that the answer confirms; Refused where its own status says that it failed.

        ``reference`` is what a rule found, if any. Only an answer that a rule calls executed (``ruled``) may do without
        a reference of the provider's: a bare 200 confirms nothing. Raises Unsure where it confirms none, and PathError.
        """
        named = reference or (values.reference(self._reference.find(tree, answer)) if self._reference else None)
        found = named or (self._own.text(context) if self._own and ruled else None)
        if found is None:
            raise Unsure("no_reference", "the answer is a success without a reference")
        self._check_echo(tree, answer, context=context, reference=found)
        settlement, word = self.status.of(tree, answer)
        if settlement is Settlement.FAILED:
            return Refused(word[:80], f"the provider answers that {found} is {word[:80]}")
        cost = self._cost(tree, answer, context=context, reference=found)
        kept = self._kept.of(tree, answer)
        return Executed(
            reference=found,
            billed=cost.money if cost else None,
            settlement=settlement,
            kept={**kept, **cost.kept} if cost else kept,
            output=values.jsonable(self._output.find(tree, answer)) if self._output else None,
        )

    def _cost(self, tree: Any, answer: Answer, *, context: Context, reference: str) -> Cost | None:
        """What was billed: as the answer says, else as the table of prices has it; None where neither tells."""
        try:
            billed = self._billed_amount(tree, answer, item=context.item)
            if billed is None and self._price is not None:
                return self._price.of_answer(tree, answer, context)
        except (NoPrice, ValueError) as error:
            raise Unsure("billed_unreadable", str(error), final=True, reference=reference) from error
        except ConfigError as error:
            raise Unsure(error.code, error.message, final=True, reference=reference) from error
        return billed

    def _billed_amount(self, tree: Any, answer: Answer, *, item: Item) -> Cost | None:
        raw = self._billed.find(tree, answer) if self._billed else None
        if raw is None:
            return None
        told = values.text(self._currency.find(tree, answer)) if self._currency else None
        asked = item.money.currency if item.money else None
        currency = told or asked
        if currency is None:
            raise ValueError("the answer tells an amount and no currency")
        cost = cost_of(raw, unit=self._unit, currency=currency, rounding=self._rounding)
        if cost.money.minor < 0:
            raise ValueError(f"the answer names the amount {cost.money}, and nobody is billed less than nothing")
        return cost

    def _check_echo(self, tree: Any, answer: Answer, *, context: Context, reference: str) -> None:
        for template, path in self._echo:
            shown = values.text(path.find(tree, answer))
            if shown is not None and shown != template.text(context):
                raise Unsure(
                    "echo_mismatch",
                    f"the answer {reference} belongs to another call: {path.place} differs from what was sent",
                    final=True,
                    reference=reference,
                )
