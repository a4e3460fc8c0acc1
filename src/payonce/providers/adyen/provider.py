"""The Adyen adapter: shapes by the official SDK, bytes through payonce's transport, meanings from the tables beside it."""

from __future__ import annotations

from payonce.core.model import Item, Request
from payonce.core.outcome import Outcome, Unresolved
from payonce.providers.adyen import answers
from payonce.providers.adyen.calls import AdyenCalls
from payonce.providers.official.adapter import NoAnswer, OfficialAdapter, Setup, Told, TransportMaker
from payonce.providers.protocol import Identity

_SUCCESS = {"refund": (200, 201), "payout": (200, 201, 202)}


class AdyenProvider(OfficialAdapter):
    """See protocol.Provider. ``prove``: the key is tried with a read before anything is sent."""

    def __init__(
        self, setup: Setup, calls: AdyenCalls, *, make_transport: TransportMaker, account: str, mode: str, prove: bool
    ) -> None:
        super().__init__(setup, make_transport=make_transport)
        self._calls = calls
        self._account = account
        self._mode = mode
        self._prove = prove
        self.operation = setup.declaration.operation

    async def identify(self) -> Identity:
        """Account and mode as configured, once Adyen has accepted the key for them. Raises ConfigError
        ``bad_credentials`` or ``identity_unreadable``."""
        if self._prove:
            try:
                await self.read(self._calls.proof(), timeout_us=self.declaration.timeout_us)
            except NoAnswer as error:
                raise self.credentials_refused(error) from error
        return Identity(self._account, self._mode)

    def prepare(self, item: Item, *, key: str | None, step: int) -> Request:
        """See protocol.Provider. Pure. Raises ConfigError for an item that Adyen could not take."""
        assert step == 0, "Adyen's operations have one step"
        return self._calls.call(item, key=key)

    def outcome(self, told: Told, request: Request, item: Item, *, key: str | None) -> Outcome:
        """See OfficialAdapter."""
        if not 200 <= told.status < 300:
            return answers.meaning(told, sent=item.attempts)
        if told.tree is None or told.status not in _SUCCESS[self.operation]:
            return Unresolved("unreadable_answer", "the answer is a success, but not one of Adyen's")
        return answers.confirmed(told.tree, item, operation=self.operation, account=self._account)
