"""What each adapter declares, as data for people and programs. Opens nothing and needs no credentials."""

from __future__ import annotations

from typing import Any, Final

from payonce.core.model import Declaration, KeyDeclaration, LookupDeclaration
from payonce.providers import registry
from payonce.service.durations import duration_text

# Kinds that promise nothing by themselves: what holds for a batch is said by its own settings.
OPEN: Final = ("http", "python")


def declarations(kind: str | None = None) -> list[dict[str, Any]]:
    """The declarations of all kinds, or of one; one an operation where they differ.

    Raises ConfigError where there is no such kind.
    """
    kinds = [kind] if kind is not None else list(registry.KINDS)
    return [
        declaration_json(declared, summary=registry.KINDS[name].summary)
        for name in kinds
        for declared in registry.describe_all(name)
    ]


def declaration_json(declared: Declaration, *, summary: str) -> dict[str, Any]:
    """One declaration in words and numbers. Durations are text with their unit."""
    return {
        "kind": declared.kind,
        "operation": declared.operation,
        "what": summary,
        "key": _key(declared.key),
        "key_retention": _retention(declared.key),
        "stores_errors": declared.key.stores_errors if declared.key else None,
        "lookup": _lookup(declared.lookup),
        "lookup_lag": duration_text(declared.lookup.lag_us) if declared.lookup else None,
        "timeout": duration_text(declared.timeout_us),
        "max_execution": duration_text(declared.max_execution_us),
        "steps": list(declared.steps),
        "settles_later": declared.settles_later,
        "statement": list(declared.statement),
        "reverse": declared.reverse or None,
        "rate": declared.rate or None,
        "identity": declared.identity or None,
        "preflight": declared.preflight or None,
        "guarantee": _guarantee(declared),
        "notes": list(declared.notes),
        "sources": list(declared.sources),
    }


def _guarantee(declared: Declaration) -> str:
    if declared.kind in OPEN and declared.key is None and declared.lookup is None:
        return "as the batch file promises: payonce plan says in one sentence what a crash leaves to you"
    return declared.guarantee


def _key(key: KeyDeclaration | None) -> str | None:
    if key is None:
        return None
    return f"{key.carrier} ({key.format.name}, {key.format.length} characters)"


def _retention(key: KeyDeclaration | None) -> str | None:
    if key is None:
        return None
    return "for ever" if key.retention_us is None else f"at least {duration_text(key.retention_us)}"


def _lookup(lookup: LookupDeclaration | None) -> str | None:
    if lookup is None:
        return None
    echoes = [name for name, has in (("the item's id", lookup.own_reference), ("our key", lookup.key)) if has]
    return lookup.by + (f"; shows {' and '.join(echoes)}" if echoes else "; shows neither the item's id nor our key")
