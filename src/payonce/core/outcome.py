"""What one call is known to have done: exactly one of six outcomes (SPEC section 4), and the evidence that came with it.

An answer nobody classified is ``Unresolved``; an adapter must never call it ``Refused`` or ``Executed``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from payonce.core.money import Money
from payonce.core.states import Settlement
from payonce.core.values import value


@value
class Executed:
    """The provider confirms the execution.

    ``billed`` is what the answer says was billed; None means the answer does not say and the asked amount stands.
    ``kept`` are answer fields to keep with the commit, ``output`` what the call returned (JSON-able), if it is the
    product. ``carry`` are values a later step of the same item needs.
    """

    reference: str
    billed: Money | None = None
    settlement: Settlement = Settlement.NONE
    kept: Mapping[str, Any] = field(default_factory=dict)
    output: Any = None
    carry: Mapping[str, Any] = field(default_factory=dict)


@value
class Refused:
    """A definite no that asking again will not change; nothing was executed."""

    code: str
    message: str = ""


@value
class NotExecuted:
    """Surely nothing happened, and the same call may succeed later.

    ``load`` says that the cause was load (429, refused connection): it uses up no attempts and slows the batch down.
    ``retry_after_us`` is what the provider asked for, in microseconds from the answer.
    """

    code: str
    message: str = ""
    load: bool = False
    retry_after_us: int | None = None


@value
class Unresolved:
    """It may have been executed: resolve it (SPEC section 6).

    ``burnt``: the provider replayed a remembered error, so this key can never succeed any more.
    ``in_progress``: the provider says that the first call is still running; waiting uses up no attempts.
    ``final``: asking again cannot help (the provider contradicts itself); only a look-up, a statement or a person can.
    ``hint_reference``: a reference seen before the answer broke off, as evidence for a look-up.
    """

    code: str
    message: str = ""
    burnt: bool = False
    in_progress: bool = False
    final: bool = False
    retry_after_us: int | None = None
    hint_reference: str | None = None


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """The provider says that the effect exists already. A look-up tells whose it is."""

    code: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Stop:
    """Every further item would meet the same (bad credentials, no balance): the whole batch stops.

    ``executed`` is False where surely nothing happened to this item; it then goes back to planned.
    """

    code: str
    message: str = ""
    executed: bool = False


Outcome = Executed | Refused | NotExecuted | Unresolved | AlreadyDone | Stop


@value
class Reply:
    """An outcome with its evidence.

    ``sent`` is False only where it is certain that no byte of the request left. ``status`` is the HTTP status, if
    any; ``response`` the raw body, cut to the adapter's limit; ``request_id`` the provider's own name of the call.
    ``started_us`` and ``ended_us`` are wall-clock microseconds since the epoch.
    """

    outcome: Outcome
    sent: bool = True
    status: int | None = None
    response: bytes | None = None
    truncated: bool = False
    request_id: str | None = None
    replayed: bool = False
    started_us: int = 0
    ended_us: int = 0


@dataclass(frozen=True, slots=True)
class Execution:
    """One execution that a provider's look-up shows. Fields the provider does not tell are None."""

    reference: str
    money: Money | None = None
    own_reference: str | None = None
    key: str | None = None
    at_us: int | None = None
    settlement: Settlement = Settlement.NONE
    failed: bool = False
    kept: Mapping[str, Any] = field(default_factory=dict)
    output: Any = None
    carry: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """A look-up that was answered: all executions on the item's target that it shows, oldest first."""

    executions: tuple[Execution, ...]
    status: int | None = None
    response: bytes | None = None


@dataclass(frozen=True, slots=True)
class LookupFailed:
    """A look-up that was not answered: it proves nothing. ``load`` and ``retry_after_us`` as in NotExecuted; ``final``: there is
    nothing to ask with, so asking again cannot help."""

    code: str
    message: str = ""
    load: bool = False
    stop: bool = False
    retry_after_us: int | None = None
    final: bool = False


LookupReply = Found | LookupFailed
