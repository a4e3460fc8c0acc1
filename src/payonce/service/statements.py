"""The provider's own account of what it did, fetched into a file that ``payonce reconcile --statement`` reads."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import msgspec

from payonce.core.errors import UsageError
from payonce.providers import answers_values as values
from payonce.providers.protocol import Provider
from payonce.service.batchfile import BatchFile
from payonce.service.planning import provider_of


@runtime_checkable
class Lists(Protocol):
    """A provider whose API lists what it did."""

    async def statement(self, kind: str, *, from_us: int | None, to_us: int | None) -> Sequence[Mapping[str, Any]]: ...


def fetch(
    file: BatchFile, out: Path, *, kind: str, from_us: int | None, to_us: int | None, environ: Mapping[str, str]
) -> int:
    """Writes all rows of a period as JSON Lines, oldest first; how many. Sends nothing but reads.

    Raises UsageError where the provider has no such list, the list does not add up, or the file is there already.
    """
    provider = provider_of(file, environ=environ)
    if not isinstance(provider, Lists):
        raise UsageError(
            f"payonce cannot list what {file.provider['kind']} did",
            code="no_listing",
            hint="download its report and describe it in [statement], then: payonce reconcile BATCH --statement FILE",
        )
    rows = asyncio.run(_rows(provider, provider, kind=kind, from_us=from_us, to_us=to_us))
    try:
        with out.open("xb") as target:
            for row in rows:
                target.write(msgspec.json.encode(values.jsonable(row)) + b"\n")
    except FileExistsError:
        raise UsageError(f"{out} is there already", code="file_exists", hint="name another file") from None
    return len(rows)


async def _rows(
    provider: Provider, lists: Lists, *, kind: str, from_us: int | None, to_us: int | None
) -> Sequence[Mapping[str, Any]]:
    await provider.open()
    try:
        return await lists.statement(kind, from_us=from_us, to_us=to_us)
    finally:
        await provider.close()
