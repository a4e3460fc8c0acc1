"""The limits of a batch file, in exact numbers, and a lease in which every call fits.

Adjusts only what was left to it: a timeout nobody stated is shortened to fit a stated lease; where both are stated and do
not fit, the lease is lengthened and a warning says so. The other way round a worker could lose an item on its way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from payonce.core.durations import duration_us
from payonce.core.errors import PayonceError
from payonce.core.model import SECOND_US, Limits
from payonce.service import batchfile_tables as tables
from payonce.service.batchfile_check import Faults, read_table
from payonce.service.batchfile_costs import check_costs, read_policy
from payonce.service.durations import amounts_minor, rate_per_ks

_DEFAULT_TIMEOUT_US = 10 * SECOND_US
_SHORTEST_LEASE_US = SECOND_US
_SHORTEST_TIMEOUT_US = 1000


def read_limits(raw: Mapping[str, Any], faults: Faults) -> tuple[Limits | None, tuple[str, ...], dict[str, Any]]:
    """The limits, warnings about what was adjusted, and the provider's table with a timeout that fits the lease.

    The limits are None where the table could not be read; every fault was added.
    """
    provider = dict(raw.get("provider", {}))
    table = read_table(raw.get("limits", {}), tables.LimitsTable, table="limits", faults=faults)
    timeout_us = _timeout(provider, faults)
    if table is None:
        return None, (), provider
    reader = Reader("limits", faults)
    on_unknown, again = read_policy(raw, provider, faults)
    lease_us = reader.duration("lease", table.lease, at_least=_SHORTEST_LEASE_US)
    lease_us, capped_us, warnings = fit_lease(lease_us=lease_us, timeout_us=timeout_us)
    # A Python operation states its timeout where it is declared; for it the engine lengthens the lease if need be.
    if capped_us is not None and provider.get("kind") != "python":
        provider["timeout"] = f"{capped_us // 1000}ms"
    grace_us = reader.duration("grace", table.grace)
    limits = Limits(
        concurrency=table.concurrency,
        rate_per_ks=reader.rate("rate", table.rate),
        attempts=table.attempts,
        budget=reader.amounts("budget", table.budget),
        max_amount=reader.amounts("max_amount", table.max_amount),
        reserve=reader.amounts("reserve", table.reserve),
        on_unknown=on_unknown,
        pay_again_limit=again,
        stop_after_refusals=table.stop_after_refusals,
        stop_after_consecutive=table.stop_after_consecutive,
        grace_us=30 * SECOND_US if grace_us is None else grace_us,
        lease_us=lease_us,
    )
    check_costs(raw, limits, faults)
    return limits, warnings, provider


def fit_lease(*, lease_us: int | None, timeout_us: int | None) -> tuple[int, int | None, tuple[str, ...]]:
    """A lease in which a call fits twice over: the lease, the call's timeout where it had to be capped, and warnings.

    None means "not stated". A worker that holds a lease shorter than its calls would lose items that are on their way.
    """
    if lease_us is None:
        return max(Limits().lease_us, 2 * (timeout_us or 0)), None, ()
    if timeout_us is None:
        half = lease_us // 2
        return lease_us, half if half < _DEFAULT_TIMEOUT_US else None, ()
    if timeout_us * 2 <= lease_us:
        return lease_us, None, ()
    fitting = 2 * timeout_us
    return (
        fitting,
        None,
        (
            f"limits.lease was raised from {lease_us / 1e6:g}s to {fitting / 1e6:g}s: a call may take "
            f"{timeout_us / 1e6:g}s (provider.timeout) and must fit well inside the lease",
        ),
    )


def _timeout(provider: Mapping[str, Any], faults: Faults) -> int | None:
    value = provider.get("timeout")
    return (
        Reader("provider", faults).duration("timeout", value, at_least=_SHORTEST_TIMEOUT_US)
        if isinstance(value, str)
        else None
    )


class Reader:
    """Turns the texts of one table into numbers; what does not fit is added to the faults."""

    def __init__(self, table: str, faults: Faults) -> None:
        self._table = table
        self._faults = faults

    def duration(self, key: str, text: str | None, *, at_least: int = 0) -> int | None:
        """The duration in microseconds, or None where it is not stated or does not fit."""
        us = cast("int | None", self._value(key, text, duration_us))
        if us is not None and us < at_least:
            self._add(key, text, f"must be at least {at_least / 1e6:g}s")
        return us

    def rate(self, key: str, text: str | None) -> int | None:
        """The rate in calls per 1,000 seconds, or None where it is not stated or does not fit."""
        return cast("int | None", self._value(key, text, rate_per_ks))

    def amounts(self, key: str, table: Mapping[str, object]) -> dict[str, int]:
        """The amounts in minor units by currency; empty where they are not stated or do not fit."""
        return cast("dict[str, int]", self._value(key, table, amounts_minor) or {})

    def _value(self, key: str, value: Any, read: Any) -> object:
        if value is None:
            return None
        try:
            return cast(object, read(value))
        except PayonceError as error:
            self._add(key, value, error.message)
        except ValueError as error:
            self._add(key, value, str(error))
        return None

    def _add(self, key: str, value: object, why: str) -> None:
        self._faults.add(f"{value!r} does not fit; {why}", table=self._table, key=key, value=value, code="bad_setting")
