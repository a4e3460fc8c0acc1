"""What of a call's payloads is kept, by policy: nothing but the digest, a redacted copy, or all of it. Pure.

Names that stand for secrets are hidden whatever the policy says. A body that cannot be read field by field is kept only
where everything may be kept and only if it holds no such name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlencode

import orjson

Keep = Literal["digest", "redacted", "full"]
HIDDEN: Final = "[redacted]"
_SECRET: Final = re.compile(
    r"secret|password|passwd|token|authorization|api[_-]?key|private[_-]?key|credential|cvc|cvv|pin$", re.IGNORECASE
)
_PERSONAL: Final = re.compile(
    r"name|e?mail|phone|mobile|address|street|city|postal|postcode|zip|birth|dob|iban|bic|account|card|number|pan$|"
    r"tax|ssn|passport|ip$|description|note|memo|message|comment",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PayloadPolicy:
    """``keep`` and field rules. ``hide`` are names or dotted paths hidden besides the built-in ones, ``show`` those kept
    although a built-in personal name covers them; secrets are never shown. ``requests``: bodies of requests too."""

    keep: Keep = "digest"
    hide: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    requests: bool = True

    def kept(self, raw: bytes | None) -> bytes | None:
        """What is stored of a body; None where only its digest is kept."""
        if self.keep == "digest" or not raw:
            return None
        try:
            value = orjson.loads(raw)
        except orjson.JSONDecodeError:
            return self._text(raw)
        clean = self._clean(value, "")
        return raw if clean == value else orjson.dumps(clean)

    def _text(self, raw: bytes) -> bytes | None:
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            return None
        pairs = parse_qsl(text, keep_blank_values=True)
        if pairs and urlencode(pairs) == text:
            clean = [(name, HIDDEN if self._hides(name, name) else value) for name, value in pairs]
            return raw if clean == pairs else urlencode(clean).encode()
        return raw if self.keep == "full" and not _SECRET.search(text) else None

    def _clean(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return {
                name: HIDDEN if self._hides(name, f"{path}{name}") else self._clean(inner, f"{path}{name}.")
                for name, inner in value.items()
            }
        return [self._clean(inner, path) for inner in value] if isinstance(value, list) else value

    def _hides(self, name: str, path: str) -> bool:
        if _SECRET.search(name) or name in self.hide or path in self.hide:
            return True
        if self.keep == "full" or name in self.show or path in self.show:
            return False
        return _PERSONAL.search(name) is not None


def default_for(operation: str) -> PayloadPolicy:
    """Digests for what moves money, full answers for ``call``, whose answers are what was paid for."""
    return PayloadPolicy("full", requests=False) if operation == "call" else PayloadPolicy()
