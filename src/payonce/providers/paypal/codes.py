"""PayPal's error issues that are known, each with what it means for a batch. What is not here is Unresolved.

Source: https://github.com/paypal/paypal-rest-api-specifications, payments_payment_v2.json (captures.refund-400, -422)
and payments_payouts_batch_v1.json.
"""

from __future__ import annotations

from typing import Final

# Validation, or a definite no for this one item.
REFUSED: Final[dict[str, str]] = {
    "MAX_NUMBER_OF_REFUNDS_EXCEEDED": "the capture has been refunded as often as PayPal allows",
    "REFUND_TIME_LIMIT_EXCEEDED": "the capture is too old to be refunded",
    "REFUND_NOT_ALLOWED": "the capture cannot be refunded",
    "REFUND_IS_RESTRICTED": "the capture may not be refunded by this account",
    "PARTIAL_REFUND_NOT_ALLOWED": "the capture can be refunded as a whole only",
    "PENDING_CAPTURE": "the capture is still pending",
    "TRANSACTION_DISPUTED": "the payment is disputed: its money goes back through the dispute",
    "REFUND_NOT_PERMITTED_DUE_TO_CHARGEBACK": "the payment was charged back",
    "CURRENCY_MISMATCH": "the capture is in another currency",
    "REFUND_CAPTURE_CURRENCY_MISMATCH": "the capture is in another currency",
    "REFUND_AMOUNT_TOO_LOW": "the amount is under what PayPal refunds",
    "DECIMAL_PRECISION": "the amount has more decimals than its currency",
    "DECIMALS_NOT_SUPPORTED": "the currency has no decimals at PayPal",
    "CANNOT_BE_NEGATIVE": "the amount is negative",
    "CANNOT_BE_ZERO_OR_NEGATIVE": "the amount is zero or negative",
    "INVALID_CURRENCY_CODE": "PayPal does not know the currency",
    "INVALID_PARAMETER_SYNTAX": "a value has the wrong form",
    "INVALID_PARAMETER_VALUE": "a value is not allowed",
    "INVALID_STRING_LENGTH": "a text has the wrong length",
    "INVALID_STRING_MAX_LENGTH": "a text is too long",
    "MISSING_REQUIRED_PARAMETER": "a value is missing",
    "INVALID_RESOURCE_ID": "there is no such capture in this account and environment",
    "PAYER_ACCOUNT_LOCKED_OR_CLOSED": "the customer's account is locked or closed",
}

# The same for every further item: the batch stops.
STOP: Final[dict[str, str]] = {
    "REFUND_FAILED_INSUFFICIENT_FUNDS": "the PayPal balance does not cover this; top it up, then resume",
    "INSUFFICIENT_FUNDS": "the PayPal balance does not cover this; top it up, then resume",
    "PAYEE_ACCOUNT_LOCKED_OR_CLOSED": "our account is locked or closed",
    "PAYEE_ACCOUNT_RESTRICTED": "our account is restricted",
    "INVALID_ACCOUNT_STATUS": "our account may not do this",
    "PERMISSION_DENIED": "the app lacks a permission that this call needs",
}

# The effect may be there already.
ALREADY_DONE: Final[dict[str, str]] = {
    "CAPTURE_FULLY_REFUNDED": "the capture is refunded already",
    "REFUND_AMOUNT_EXCEEDED": "less than this is left on the capture",
    "DUPLICATE_INVOICE_ID": "this item's invoice_id was used already: a refund of it exists",
}

IN_PROGRESS: Final = frozenset({"PREVIOUS_REQUEST_IN_PROGRESS"})
# The id is known with another body, which our stored bytes cannot have: somebody else sent it.
KEY_TAKEN: Final = frozenset({"PAYPAL_REQUEST_ID_PREVIOUSLY_USED", "DUPLICATE_REQUEST_ID"})
