"""payonce: batches that move money, every item paid exactly once, whatever crashes.

Names are imported when they are first used, so that ``import payonce`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from payonce.core.lazily import names_of

if TYPE_CHECKING:
    from payonce.api import Counts, Result, run, run_async
    from payonce.api_once import once
    from payonce.core.errors import (
        ConfigError,
        InputError,
        LedgerError,
        MoneyError,
        PayonceError,
        SealedError,
        UsageError,
    )
    from payonce.core.model import NewItem as Item
    from payonce.core.money import Money
    from payonce.core.outcome import (
        AlreadyDone,
        Executed,
        Execution,
        Found,
        LookupFailed,
        NotExecuted,
        Refused,
        Stop,
        Unresolved,
    )
    from payonce.core.states import BatchState, ItemState, Settlement
    from payonce.providers.python_operation import Call, operation
    from payonce.service.single_desk import ItemBusy, ItemRefused, ItemUnknown

__version__ = "0.1.0"

_HOMES = {
    "payonce.api": ("Counts", "Result", "run", "run_async"),
    "payonce.api_once": ("once",),
    "payonce.core.errors": (
        "ConfigError",
        "InputError",
        "LedgerError",
        "MoneyError",
        "PayonceError",
        "SealedError",
        "UsageError",
    ),
    "payonce.core.model": ("Item",),
    "payonce.core.money": ("Money",),
    "payonce.core.outcome": (
        "AlreadyDone",
        "Executed",
        "Execution",
        "Found",
        "LookupFailed",
        "NotExecuted",
        "Refused",
        "Stop",
        "Unresolved",
    ),
    "payonce.core.states": ("BatchState", "ItemState", "Settlement"),
    "payonce.providers.python_operation": ("Call", "operation"),
    "payonce.service.single_desk": ("ItemBusy", "ItemRefused", "ItemUnknown"),
}

__all__ = [
    "AlreadyDone",
    "BatchState",
    "Call",
    "ConfigError",
    "Counts",
    "Executed",
    "Execution",
    "Found",
    "InputError",
    "Item",
    "ItemBusy",
    "ItemRefused",
    "ItemState",
    "ItemUnknown",
    "LedgerError",
    "LookupFailed",
    "Money",
    "MoneyError",
    "NotExecuted",
    "PayonceError",
    "Refused",
    "Result",
    "SealedError",
    "Settlement",
    "Stop",
    "Unresolved",
    "UsageError",
    "once",
    "operation",
    "run",
    "run_async",
]

__getattr__, __dir__ = names_of(__name__, _HOMES, renamed={"Item": "NewItem"})
