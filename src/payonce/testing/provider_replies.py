"""Single answers out of real incidents, and the most that any adapter may make of each.

An adapter that does not know an answer's form calls it Unresolved, which is always allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from payonce.core.outcome import AlreadyDone, NotExecuted, Outcome, Stop, Unresolved


@dataclass(frozen=True, slots=True)
class SingleReply:
    """``outcomes`` may come of it; Refused only if ``refused``, Executed only if ``executed_if_mismatch``."""

    id: str
    status: int
    body: bytes
    why: str
    headers: tuple[tuple[str, str], ...] = ()
    outcomes: tuple[type[Outcome], ...] = (Unresolved,)
    refused: bool = False
    executed_if_mismatch: bool = False


_REPLAYED: Final = (("Idempotent_Replayed", "true"),)

SINGLE_REPLIES: Final = (
    SingleReply(
        "R01", 200, b'{"success":false,"errors":["insufficient funds"]}', "the body says refused", refused=True
    ),
    SingleReply("R03", 200, b"", "an empty body carries no reference"),
    SingleReply("R05", 202, b'{"status":"processing"}', "accepted: neither failed nor final"),
    SingleReply("R07", 200, b'{"Ds_Response":"0900"}', "another provider's success code"),
    SingleReply(
        "R09",
        400,
        b'{"error":{"type":"idempotency_error","message":"key used with other parameters"}}',
        "somebody sent this key before",
    ),
    SingleReply(
        "R11",
        400,
        b'{"error":"USER_BUSINESS_ERROR","issue":"Duplicate batch request"}',
        "evidence that the first arrived",
    ),
    SingleReply(
        "R13",
        429,
        b'{"error":{"code":"lock_timeout"}}',
        "another request holds the object: the same key again, later",
        outcomes=(NotExecuted, Unresolved),
    ),
    SingleReply("R15", 500, b'{"error":{"type":"api_error"}}', "a stored answer: asking again cannot help", _REPLAYED),
    SingleReply("R17", 504, b"", "a proxy's time ran out"),
    SingleReply(
        "R19",
        400,
        b'{"error":"Refund amount must be less than the debit amount"}',
        "may be an already refunded charge in disguise",
        outcomes=(AlreadyDone, Unresolved),
    ),
    SingleReply(
        "R21",
        402,
        b'{"error":{"code":"card_declined"}}',
        "a stored decline is repeated for as long as the key lives",
        _REPLAYED,
        refused=True,
    ),
    SingleReply("R23", 401, b'{"error":"invalid api key"}', "the credentials changed", outcomes=(Stop,)),
    SingleReply(
        "R25",
        200,
        b'{"id":"re_1","charge":"ch_1","amount":100000,"currency":"inr","status":"succeeded"}',
        "another currency than asked",
        executed_if_mismatch=True,
    ),
    SingleReply(
        "R27",
        409,
        b'{"error":"transaction has already been refunded"}',
        "some answer 409 and have changed their state",
        outcomes=(AlreadyDone, Unresolved),
    ),
    SingleReply(
        "R29",
        200,
        b'{"status":"completed","output_file_id":null,"error_file_id":"err2","request_counts":'
        b'{"total":9,"completed":0,"failed":9}}',
        "completed, with nothing done",
        refused=True,
    ),
)
