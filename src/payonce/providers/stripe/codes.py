"""Stripe's error codes that are known, each with what it means for a batch. What is not here is Unresolved.

Names: the code enum of the official SDK (stripe-python, ``PaymentIntent.LastPaymentError.code``); meanings:
https://docs.stripe.com/error-codes.
"""

from __future__ import annotations

from typing import Final

# The same for every further item: the batch stops.
STOP: Final[dict[str, str]] = {
    "api_key_expired": "the API key has expired",
    "platform_api_key_expired": "the platform's API key has expired",
    "secret_key_required": "a publishable key was used where a secret key belongs",
    "account_invalid": "stripe_account is not an account of this key",
    "platform_account_required": "only a platform may do this",
    "livemode_mismatch": "the key is of the other mode (live or test)",
    "testmode_charges_only": "the account is not activated for live payments",
    "balance_insufficient": "the Stripe balance does not cover this; top it up, then resume",
    "payouts_not_allowed": "Stripe has switched payouts off for this account",
    "payouts_limit_exceeded": "the account's payout limit is reached",
    "transfers_not_allowed": "transfers are not allowed for this account",
    "tls_version_unsupported": "the connection's TLS version is too old",
}

# A definite no for this one item; decided before or without moving money.
REFUSED: Final[dict[str, str]] = {
    "charge_disputed": "the charge is disputed: its money goes back through the dispute, not through a refund",
    "refund_disputed_payment": "the payment is disputed: its money goes back through the dispute",
    "charge_not_refundable": "the charge cannot be refunded",
    "charge_invalid_parameter": "the charge does not allow this",
    "resource_missing": "there is no such object in this account and mode",
    "amount_too_large": "the amount is over what Stripe allows",
    "amount_too_small": "the amount is under what Stripe allows",
    "invalid_charge_amount": "the amount is not valid",
    "parameter_invalid_empty": "a value is empty",
    "parameter_invalid_integer": "a number is not valid",
    "parameter_invalid_string_blank": "a text is blank",
    "parameter_invalid_string_empty": "a text is empty",
    "parameter_missing": "a value is missing",
    "parameter_unknown": "Stripe does not know a parameter",
    "parameters_exclusive": "two parameters exclude each other",
    "invalid_characters": "a text has characters that Stripe does not take",
    "no_account": "the bank account could not be located",
    "account_closed": "the receiving account is closed",
    "account_number_invalid": "the bank account's number is not valid",
    "routing_number_invalid": "the bank's routing number is not valid",
    "bank_account_bad_routing_numbers": "the bank's routing number is not valid",
    "bank_account_declined": "the bank account cannot be used",
    "bank_account_restricted": "the bank account cannot be used",
    "bank_account_unusable": "the bank account cannot be used",
    "bank_account_unverified": "the bank account is not verified",
    "instant_payouts_config_disabled": "instant payouts are switched off",
    "instant_payouts_currency_disabled": "no instant payouts in this currency",
    "instant_payouts_limit_exceeded": "the limit of instant payouts is reached",
    "instant_payouts_unsupported": "this destination takes no instant payouts",
    "card_declined": "the card was declined",
    "expired_card": "the card has expired",
    "incorrect_cvc": "the card's security code is wrong",
    "incorrect_number": "the card's number is wrong",
    "authentication_required": "the customer has to confirm the payment",
    "payment_intent_authentication_failure": "the customer's confirmation failed",
    "payment_intent_action_required": "the customer has to confirm the payment",
    "invoice_payment_intent_requires_action": "the customer has to confirm the payment",
    "invoice_no_customer_line_items": "the invoice has no lines",
    "invoice_no_payment_method_types": "the invoice can be paid by no payment method",
    "payment_method_customer_decline": "the customer declined the payment",
    "payment_method_provider_decline": "the payment method's provider declined it",
    "payment_method_unactivated": "the payment method is not activated",
    "payment_method_unsupported_type": "the payment method does not fit",
}

# The effect may be there already: a look-up tells whose it is.
ALREADY_DONE: Final[dict[str, str]] = {
    "charge_already_refunded": "the charge is refunded already",
    "invoice_not_editable": "the invoice is finalised already",
    "resource_already_exists": "the object exists already",
}
