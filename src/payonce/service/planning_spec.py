"""What is sealed beside the items: the facts a batch is bound to, and how its input was read."""

from __future__ import annotations

from typing import Any

from payonce.core.model import BatchSpec
from payonce.intake import InputSettings, Intake
from payonce.providers.protocol import Identity, Provider
from payonce.service.batchfile import BatchFile
from payonce.service.planning_input import mapped, reading_digest
from payonce.service.planning_report import extremes_data


def totals_of(intake: Intake) -> dict[str, int]:
    """The input's totals in minor units by currency."""
    return {total.currency: total.total.minor for total in intake.totals}


def spec_of(
    file: BatchFile,
    intake: Intake,
    provider: Provider,
    identity: Identity,
    settings: InputSettings,
    *,
    allowed: str | None = None,
) -> BatchSpec:
    """What is sealed beside the items. The provider's table is as it was written: no credential is in it.

    ``allowed`` is the reason why targets that others acted on may be acted on.
    """
    target, item_id, key = file.item.target, file.item.id, provider.declaration.key
    config: dict[str, Any] = {
        "provider_digest": provider.provider_digest,
        "guarantee": provider.declaration.guarantee,
        "key_carrier": key.carrier if key is not None else None,
        "provider": dict(file.provider),
        "statement": dict(file.statement),
        "item": {role: column for column, role in mapped(file.item).items()},
        "columns": list(intake.columns),
        "totals": totals_of(intake),
        "extremes": extremes_data(intake),
        "reading": reading_digest(file, settings, source=intake.source_digest or None),
        "skip_bad_rows": settings.skip_bad_rows,
    }
    if allowed is not None:
        config["allow_overlap"] = allowed
    return BatchSpec(
        file.id,
        file.operation,
        str(file.provider["kind"]),
        namespace=file.namespace,
        account=identity.account,
        mode=identity.mode,
        targets=target is not None and target != item_id,
        source=intake.file,
        source_digest=intake.source_digest or None,
        config=config,
    )
