"""The PayPal adapter: shapes by the official SDK where it has them, bytes through payonce's transport."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from payonce.core.errors import ConfigError
from payonce.core.model import Item, Request
from payonce.core.outcome import LookupFailed, NotExecuted, Outcome, Reply, Stop, Unresolved
from payonce.providers.official.adapter import NoAnswer, OfficialAdapter, Setup, Told, TransportMaker
from payonce.providers.official.values import Unreadable, asked, major, mapping
from payonce.providers.paypal import answers
from payonce.providers.paypal.calls import PayPalCalls
from payonce.providers.paypal.tokens import Refusal, Tokens
from payonce.providers.protocol import Gate, Identity, Preflight
from payonce.providers.secrets import Redactor, Vault
from payonce.providers.transport import Answer, Fault

_REFUSED = "PayPal does not accept the client id and secret"


class PayPalProvider(OfficialAdapter):
    """See protocol.Provider."""

    def __init__(
        self,
        setup: Setup,
        calls: PayPalCalls,
        *,
        make_transport: TransportMaker,
        client: str,
        secret: str,
        vault: Vault,
        account: str,
        mode: str,
    ) -> None:
        super().__init__(setup, make_transport=make_transport)
        self._calls = calls
        self._account = account
        self._mode = mode
        self._tokens = Tokens(client=client, secret=secret, vault=vault, known=self._learn)
        self.operation = setup.declaration.operation

    def _learn(self, redactor: Redactor) -> None:
        self._setup = replace(self._setup, redactor=redactor)

    async def identify(self) -> Identity:
        """Account and mode as configured, once PayPal has given a token for them. Raises ConfigError."""
        try:
            token = await self._tokens.get(self._transport, timeout_us=self.declaration.timeout_us)
        except Refusal as error:
            raise ConfigError(
                _REFUSED, code="bad_credentials", hint="check both variables, and whether they are live or sandbox ones"
            ) from error
        if isinstance(token, Fault):
            raise ConfigError(
                f"PayPal does not tell whose credentials these are: {token.message}",
                code="identity_unreadable",
                hint="check the network and the address; payonce doctor makes the same call",
            )
        return Identity(self._account, self._mode)

    def prepare(self, item: Item, *, key: str | None, step: int) -> Request:
        """See protocol.Provider. Pure. Raises ConfigError for an item that PayPal could not take."""
        assert step == 0, "PayPal's operations have one step"
        return self._calls.call(item, key=key)

    async def send(self, request: Request, item: Item, *, key: str | None, timeout_us: int, gate: Gate) -> Reply:
        """See protocol.Provider. A repeated payout is followed to the first one, within the same deadline."""
        until_us = time.monotonic_ns() // 1000 + timeout_us
        try:
            reply = await super().send(request, item, key=key, timeout_us=timeout_us, gate=gate)
        except Refusal:
            now_us = time.time_ns() // 1000
            return Reply(Stop("bad_credentials", _REFUSED), sent=False, started_us=now_us, ended_us=now_us)
        if self.operation == "payout" and reply.status in (400, 409, 422) and isinstance(reply.outcome, Unresolved):
            left_us = until_us - time.monotonic_ns() // 1000
            return await self._first(reply, item, key=key, timeout_us=left_us)
        return reply

    async def _exchange(self, request: Request, *, timeout_us: int, gate: Gate) -> Answer | Fault:
        """With a token added to a copy of the request; the stored one has none."""
        until_us = time.monotonic_ns() // 1000 + timeout_us
        token = await self._tokens.get(self._transport, timeout_us=timeout_us)
        if isinstance(token, Fault):
            return token
        left_us = until_us - time.monotonic_ns() // 1000
        if left_us <= 0:
            return Fault("no_token", "no time was left after the access token was fetched", sent=False, load=True)
        dressed = replace(request, headers=(*request.headers, ("Authorization", f"Bearer {token}")))
        answer = await self._transport.send(dressed, timeout_us=left_us, gate=gate)
        if isinstance(answer, Answer):
            self._tokens.heard(token, accepted=answer.status != 401)
        return answer

    def outcome(self, told: Told, request: Request, item: Item, *, key: str | None) -> Outcome:
        """See OfficialAdapter. A token that was refused after others held is replaced at the next call; if the
        credentials themselves are refused then, that stops the batch."""
        if told.status == 401:
            if self._tokens.ever_accepted:
                return NotExecuted("token_refused", "PayPal refused the access token; the next call gets another")
            return Stop("bad_credentials", "PayPal gives a token for these credentials and does not accept it")
        if not 200 <= told.status < 300:
            return answers.meaning(told)
        if told.tree is None or told.status not in (200, 201):
            return Unresolved("unreadable_answer", "the answer is a success, but not one of PayPal's")
        if self.operation == "payout":
            return answers.paid_out(told.tree, item, key=key)
        return answers.refunded(told.tree, item, invoice_id=self._calls.invoice_id(item))

    async def _first(self, reply: Reply, item: Item, *, key: str | None, timeout_us: int) -> Reply:
        """An answer about a sender_batch_id that was used before: what became of that one. A read that fails, or finds
        nothing, proves nothing."""
        told = self._told(Answer(reply.status or 0, (), reply.response or b""))
        batch = answers.first_batch(told)
        if batch is None or timeout_us <= 0:
            return reply
        try:
            tree = await self.read(Request("GET", f"/v1/payments/payouts/{batch}"), timeout_us=timeout_us)
        except (NoAnswer, Refusal):
            unclear = Unresolved("duplicate_unread", f"sent before as {batch}, which could not be read", final=False)
            return replace(reply, outcome=replace(unclear, hint_reference=batch))
        return replace(reply, outcome=answers.paid_out(tree, item, key=key), replayed=True)

    async def preflight(self, item: Item, *, timeout_us: int) -> Preflight | None:
        """A refund's capture, as it is now; None for payouts."""
        if self.operation != "refund":
            return None
        unsendable = self.unsendable(item)
        if unsendable is not None:
            return unsendable
        try:
            tree = await self.read(Request("GET", f"/v2/payments/captures/{item.target}"), timeout_us=timeout_us)
            return _judge(tree, item)
        except NoAnswer as error:
            outcome = None if error.told is None or error.status == 401 else answers.meaning(error.told)
            if error.status == 401 and self._tokens.ever_accepted:
                error.failed = replace(error.failed, stop=False)  # the next read gets another token
            return self.unfit(error, outcome, missing=f"there is no capture {item.target} in this environment")
        except Refusal:
            failed = LookupFailed("bad_credentials", _REFUSED, stop=True)
            return Preflight(False, "bad_credentials", _REFUSED, unread=failed, stop=True)
        except Unreadable as error:
            return Preflight(False, "not_checked", str(error), unread=LookupFailed("unreadable_answer", str(error)))


def _judge(tree: dict[str, Any], item: Item) -> Preflight:
    amount = mapping(tree.get("amount"))
    total, money = major(amount.get("value"), amount.get("currency_code")), asked(item)
    data = {"amount": str(total), "status": tree.get("status")}
    problem: tuple[str, str] | None = None
    if tree.get("status") == "REFUNDED":
        problem = "capture_already_refunded", f"all of {total} has been refunded already"
    elif tree.get("status") not in ("COMPLETED", "PARTIALLY_REFUNDED"):
        problem = "capture_not_completed", f"the capture is {tree.get('status')}: there is nothing to refund"
    elif total.currency != money.currency:
        problem = "currency_mismatch", f"the capture is in {total.currency}, the item in {money.currency}"
    elif total < money:
        problem = "over_refund", f"the capture is over {total}, the item asks for {money}"
    code, message = problem or (None, None)
    # PayPal says that something was refunded, not how much.
    touched = tree.get("status") in ("PARTIALLY_REFUNDED", "REFUNDED")
    already = code == "capture_already_refunded"
    return Preflight(problem is None, code, message, data, already=already, touched=touched)
