"""The idempotency layer: what a repeated key is answered, and what is remembered under one. Pure.

As at Stripe: the first call's window begins with its arrival and repeats do not extend it; while it runs, the key is
in use (409); another body or path under the key is an error; afterwards its answer is replayed. Answers that were given
before anything began to execute (401, 403, 404, 429) are not remembered.
"""

from __future__ import annotations

from payonce.providers.simulator.behaviours import Config
from payonce.providers.simulator.plan import Reply
from payonce.providers.simulator.requests import Request, error
from payonce.providers.simulator.store import KeyEntry, Store

_NEVER_STORED = frozenset({401, 403, 404, 429})
_REPLAYED = (("Idempotent-Replayed", "true"),)


def check(request: Request, *, store: Store, config: Config, now: int) -> Reply | None:
    """The answer to a key that was seen before; None where the request is to be executed."""
    if request.key is None or config.keys == "ignored":
        return None
    entry = store.keys.get((request.account, request.key))
    if entry is None or now >= entry.first_at + config.key_retention_us:
        return None
    if entry.path != request.path:
        text = "Keys for idempotent requests can only be used for the same endpoint they were first used for "
        return _misused(f"{text}('{entry.path}' vs '{request.path}').")
    if entry.digest != request.digest:
        return _misused("Keys for idempotent requests can only be used with the same parameters as at first.")
    if now < entry.ready_at:
        text = "There is currently another in-progress request using this idempotency key."
        return error(409, "idempotency_key_in_use", text, kind="idempotency_error")
    if entry.status == 0:
        # The first call ended with an answer that is not remembered.
        return None
    return Reply(entry.status, entry.body.encode(), headers=_REPLAYED)


def entry_of(
    request: Request, *, config: Config, arrived_us: int, ready_at: int, reply: Reply | None
) -> KeyEntry | None:
    """What to remember of the request: its answer, or (None) that it runs. None where keys are ignored or absent."""
    if request.key is None or config.keys == "ignored":
        return None
    return KeyEntry(
        account=request.account,
        key=request.key,
        path=request.path,
        digest=request.digest,
        first_at=arrived_us,
        ready_at=ready_at,
        status=reply.status if reply is not None else 0,
        body=reply.body.decode() if reply is not None else "",
    )


def remembered(given: Reply, *, true_answer: Reply | None, config: Config) -> Reply | None:
    """Which answer a repeat of the key gets; None: it executes.

    `true_answer` is what an execution really yielded, None if there was none. A provider that does not store errors
    still remembers what it executed, unless it is of the kind whose errors free the key.
    """
    if given.status < 400 or (config.stores_errors and given.status not in _NEVER_STORED):
        return given
    return None if config.errors_free_key else true_answer


def _misused(message: str) -> Reply:
    return error(400, "idempotency_key_reused", message, kind="idempotency_error")
