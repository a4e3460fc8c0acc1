"""The Stripe adapter: shapes by the official SDK, bytes through payonce's transport, meanings from the tables beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from payonce.core.errors import ConfigError
from payonce.core.model import Item, Request
from payonce.core.outcome import LookupFailed, LookupReply, Outcome, Unresolved
from payonce.providers.official.adapter import NoAnswer, OfficialAdapter, Setup, Told, TransportMaker
from payonce.providers.official.values import Unreadable, word
from payonce.providers.protocol import Identity, Preflight
from payonce.providers.stripe import answers
from payonce.providers.stripe.calls import StripeCalls
from payonce.providers.stripe.confirm import confirmed
from payonce.providers.stripe.lookup import StripeLookup
from payonce.providers.stripe.preflight import judge_charge
from payonce.providers.stripe.statement import Kind, StripeStatement


class StripeProvider(OfficialAdapter):
    """See protocol.Provider. ``account`` and ``mode`` are what the configuration and the key's prefix say."""

    def __init__(
        self,
        setup: Setup,
        calls: StripeCalls,
        *,
        make_transport: TransportMaker,
        account: str | None,
        mode: str | None,
        ask_account: bool,
    ) -> None:
        super().__init__(setup, make_transport=make_transport)
        self._calls = calls
        self._account = account
        self._mode = mode
        self._ask_account = ask_account
        self.operation = setup.declaration.operation
        self.lists = StripeLookup(calls, operation=self.operation, batch=setup.batch, read=self.read)

    async def identify(self) -> Identity:
        """The account from GET /v1/account, the mode from the key. Raises ConfigError ``bad_credentials``,
        ``identity_unreadable`` or ``wrong_account``."""
        if not self._ask_account:
            return Identity(self._account, self._mode)
        request = self._calls.read(lambda v1: v1.accounts.retrieve_current())
        try:
            tree = await self.read(request, timeout_us=self.declaration.timeout_us)
        except NoAnswer as error:
            raise self.credentials_refused(error) from error
        account = word(tree.get("id"))
        if account is None or self._account not in (None, account):
            raise ConfigError(
                f"the API key belongs to {account}, the batch file says {self._account}",
                code="wrong_account",
                hint="use the key of the account in the batch file, or correct account there",
            )
        return Identity(account, self._mode)

    def prepare(self, item: Item, *, key: str | None, step: int) -> Request:
        """See protocol.Provider. Pure. Raises ConfigError for an item that Stripe could not take."""
        return self._calls.call(item, key=key, step=step)

    def replayed(self, told: Told) -> bool:
        """By the header Idempotent-Replayed."""
        return answers.replayed(told)

    def outcome(self, told: Told, request: Request, item: Item, *, key: str | None) -> Outcome:
        """See OfficialAdapter."""
        if not 200 <= told.status < 300:
            return answers.meaning(told, operation=self.operation)
        if told.tree is None or told.status != 200:
            return Unresolved("unreadable_answer", "the answer is a success, but not one of Stripe's")
        step = self.declaration.steps[item.step]
        return confirmed(told.tree, item, operation=self.operation, batch=self._setup.batch, step=step)

    async def lookup(self, item: Item, *, key: str | None, step: int, timeout_us: int) -> LookupReply:
        """See protocol.Provider."""
        return await self.lists.run(item, step=self.declaration.steps[step], timeout_us=timeout_us)

    async def statement(self, kind: Kind, *, from_us: int | None, to_us: int | None) -> list[Mapping[str, Any]]:
        """What Stripe says it did in a period; see statement.py."""
        lists = StripeStatement(self._calls, self.lists, page_timeout_us=self.declaration.timeout_us)
        return await lists.rows(kind, from_us=from_us, to_us=to_us)

    async def preflight(self, item: Item, *, timeout_us: int) -> Preflight | None:
        """A refund's charge, as it is now; None for other operations."""
        if self.operation != "refund":
            return None
        unsendable = self.unsendable(item)
        if unsendable is not None:
            return unsendable
        try:
            tree: dict[str, Any] = await self.read(self._target(item), timeout_us=timeout_us)
            return judge_charge(tree, item, mode=self._mode)
        except NoAnswer as error:
            outcome = None if error.told is None else answers.meaning(error.told, operation="read")
            return self.unfit(error, outcome, missing=f"there is no {item.target} in this account and mode")
        except Unreadable as error:
            return Preflight(False, "not_checked", str(error), unread=LookupFailed("unreadable_answer", str(error)))

    def _target(self, item: Item) -> Request:
        if item.target.startswith("pi_"):
            return self._calls.read(lambda v1: v1.payment_intents.retrieve(item.target, {"expand": ["latest_charge"]}))
        return self._calls.read(lambda v1: v1.charges.retrieve(item.target))
