"""Whether the [provider] of a batch file still is what its batch was sealed with: what a run would refuse, planning does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from payonce.core.errors import ConfigError
from payonce.core.model import Batch
from payonce.core.states import BatchState
from payonce.providers.protocol import Identity, Provider
from payonce.service.batchfile import BatchFile
from payonce.service.running import check_bound

# What a run of a batch that is over does not need either: credentials, and the provider's SDK.
_NOT_AT_HAND: Final = ("missing_variable", "missing_extra")
_OVER: Final = (BatchState.FINISHED, BatchState.CANCELLED)
# Kinds whose account stands in the settings, unless they say where it is to be read.
_STATED: Final = ("http", "python")


async def check_provider(file: BatchFile, batch: Batch, make: Callable[[], Provider]) -> str | None:
    """Compares a sealed batch's provider with its file and sends nothing; a warning where it could not be compared.

    Raises ConfigError for settings that cannot be used, and SealedError as a run does where they differ in what decides
    a call. An account that only the provider can tell is compared by the run. A batch that is over is left alone.
    """
    if batch.state in _OVER:
        return None
    try:
        provider = make()
    except ConfigError as error:
        if error.code not in _NOT_AT_HAND:
            raise
        return f"[provider] was not compared with what was sealed: {error.message}"
    stated = str(file.provider["kind"]) in _STATED and "identity" not in file.provider
    identity = await provider.identify() if stated else Identity()
    check_bound(batch, identity, digest=provider.provider_digest, table=file.provider)
    return None
