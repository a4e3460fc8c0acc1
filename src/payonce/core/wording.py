"""Numbers with their words, for sentences that people read. Pure."""

from __future__ import annotations


def some(count: int, what: str, *, plural: str | None = None) -> str:
    """``1 item``, ``2 items``; ``plural`` where it is not the word with an s."""
    return f"{count} {what}" if count == 1 else f"{count} {plural or what + 's'}"
