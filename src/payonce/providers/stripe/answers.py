"""What Stripe's errors mean. Pure. A 2xx is not judged here: see confirm.py.

Source of each rule: https://docs.stripe.com/error-low-level and https://docs.stripe.com/api/errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from payonce.core.outcome import AlreadyDone, NotExecuted, Outcome, Refused, Stop, Unresolved
from payonce.providers.official.adapter import Told
from payonce.providers.official.values import mapping, word
from payonce.providers.stripe.codes import ALREADY_DONE, REFUSED, STOP

# Stripe names no code where a refund is over what is left; the text is the same in its own and in third-party servers.
_OVER_REFUND: Final = re.compile(r"greater than (?:the )?unrefunded amount|has already been refunded", re.IGNORECASE)
_OTHER_MODE: Final = re.compile(r"a similar object exists in (live|test) mode", re.IGNORECASE)


def replayed(told: Told) -> bool:
    """Whether Stripe says that this is a stored answer."""
    return (told.answer.header("idempotent-replayed") or "").lower() == "true"


def meaning(told: Told, *, operation: str) -> Outcome:
    """The outcome of an answer that is no success."""
    error = mapping(mapping(told.tree).get("error"))
    kind, code = word(error.get("type")) or "", word(error.get("code")) or ""
    message = word(error.get("message")) or ""
    status = told.status
    if status == 429 or code in ("rate_limit", "lock_timeout"):
        # Decided before the key was looked at: this call did nothing. lock_timeout: another call holds the object.
        why = code or told.answer.header("stripe-rate-limited-reason") or "rate_limited"
        return NotExecuted(why, message or "too many calls at once", True, told.retry_after_us)
    if kind == "idempotency_error":
        return Unresolved("idempotency_error", message, final=True)
    if code == "idempotency_key_in_use":
        return Unresolved(code, message, in_progress=True, retry_after_us=told.retry_after_us)
    if status in (401, 403):
        return Stop(code or ("bad_credentials" if status == 401 else "not_permitted"), _said(_STATUS[status], message))
    if status >= 500 or status < 400:
        return _unclear(told, code, message)
    return _refusal(told, error, code=code, message=message, operation=operation) or _unclear(told, code, message)


_STATUS: Final = {
    401: "Stripe does not accept the API key",
    403: "the API key lacks a permission that this call needs",
}


def _refusal(told: Told, error: Mapping[str, Any], *, code: str, message: str, operation: str) -> Outcome | None:
    """A 4xx whose code (or, for one case, text) is known; None for any other."""
    if told.status not in (400, 402, 404):
        return None
    other = _OTHER_MODE.search(message)
    if other is not None:
        return Stop("wrong_mode", f"the targets are in {other[1].lower()} mode, the API key is not")
    if code in STOP:
        return Stop(code, _said(STOP[code], message))
    if code == "insufficient_funds":
        # The customer's account where an invoice is paid, ours everywhere else.
        if operation == "invoice":
            return Refused(code, message)
        return Stop(code, _said(STOP["balance_insufficient"], message))
    if code in ALREADY_DONE:
        return AlreadyDone(code, _said(ALREADY_DONE[code], message))
    if code in REFUSED:
        return Refused(_detailed(code, error), _said(REFUSED[code], message))
    if operation == "refund" and _OVER_REFUND.search(message):
        return AlreadyDone("over_refund", _said("less than this is left on the charge", message))
    return None


def _detailed(code: str, error: Mapping[str, Any]) -> str:
    reason = word(error.get("decline_code"))
    return f"{code}:{reason}" if reason else code


def _unclear(told: Told, code: str, message: str) -> Unresolved:
    """An answer that does not tell. A stored one will be repeated for as long as the key lives."""
    if told.status < 400:
        return Unresolved("redirect", "Stripe answered with a redirect, which a call does not follow")
    text = message or f"Stripe answered with {told.status}"
    return Unresolved(code or f"http_{told.status}", text, burnt=replayed(told), retry_after_us=told.retry_after_us)


def _said(plain: str, message: str) -> str:
    return f"{plain} (Stripe: {message})" if message else plain
