"""How a SQLite ledger writes the bodies of its events: canonical JSON whose recurring parts are single control characters.

Canonical JSON (RFC 8785) never holds a raw control character, so each one stands for one fixed piece of text, and nothing
but these pieces is replaced: amounts, ids, keys, times and references stay as they are. What was written without any
(by an earlier payonce) reads as it stands. Everything outside of this file, hashes above all, knows the canonical bytes
alone: whatever reads or writes ``events.body`` goes through ``restored`` or ``shortened``. The view ``trail`` of the
schema shows the same to everyday tools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

from payonce.core.errors import LedgerError
from payonce.ledger.forms import Form
from payonce.ledger.rows import Entry

# Version 1, of schema 4. A code never gets another meaning: other pieces need free codes and a schema of their own.
# Left out are those that would tear lines apart or drive a terminal: bell to shift in (7 to 15), and escape (27).
CODES: Final[Mapping[bytes, bytes]] = {
    b"\x01": b'{"amount":"',
    b"\x02": b'","at":"',
    b"\x03": b'","attempt":1,"batch":"',
    b"\x04": b'","currency":"',
    b"\x05": b'","generation":0,"item":"',
    b"\x06": b'","key":"',
    b"\x10": b'","request":"',
    b"\x11": b'","reserve":{"amount":"',
    b"\x12": b'","seq":',
    b"\x13": b',"step":0,"type":"intent","worker":',
    b"\x14": b',"step":0,"type":"commit","worker":',
    b"\x15": b'","billed":"',
    b"\x16": b'","billed_currency":"',
    b"\x17": b'","data":{"end":"',
    b"\x18": b'","request_id":"',
    b"\x19": b'","response":"',
    b"\x1a": b'","start":"',
    b"\x1c": b'","status":',
    b"\x1d": b'},"generation":0,"item":"',
    b"\x1e": b'","reference":"',
    b"\x1f": b',"settlement":"pending"',
}
_INTENT, _COMMIT = CODES[b"\x13"], CODES[b"\x14"]
# Looking for a piece costs more than putting it back: a group of intents alone is not searched for what only the
# answers to calls have, nor a group of commits for what only calls have.
_ANSWERED: Final = frozenset(code for code in CODES if code >= b"\x14")
_ASKED: Final = frozenset((b"\x10", b"\x11", b"\x13"))
_CONTROL: Final = re.compile(rb"[\x00-\x1f]")
# So many bodies at once stay in the processor's cache while all pieces are put into them.
_AT_ONCE: Final = 64


def shortened(bodies: Sequence[bytes]) -> list[str]:
    """Canonical bodies as they are stored. Raises LedgerError where one is not canonical: it could not be read again."""
    return list(chain.from_iterable(map(_shortened, _parts(bodies))))


def stored(entries: Sequence[Entry]) -> list[str]:
    """The bodies of new events as they are stored. One of a known form is filled into the short text of its form: its values
    hold no control character, since they are JSON, so that it is restored to its canonical bytes like any other. What is of
    no item is rare and stays as it is, which is restored likewise."""
    others = iter(shortened([e.body for e in entries if e.form is None and not _stays(e.n, e.body)]))
    return [
        (form.short or _short(form)) % values
        if form is not None
        else (body.decode() if _stays(n, body) else next(others))
        for _, _, n, body, _, form, values in entries
    ]


def _stays(n: int | None, body: bytes) -> bool:
    return n is None and not _CONTROL.search(body)


def _short(form: Form) -> str:
    (form.short,) = shortened([form.text.encode()])
    return form.short


def restored(bodies: Sequence[bytes]) -> list[bytes]:
    """The canonical bytes of stored bodies; whatever was stored instead comes out as something else than it was."""
    return list(chain.from_iterable(map(_restored, _parts(bodies))))


def restored_rows(rows: list[Any], *, at: int) -> list[Any]:
    """Rows of a query, with the canonical bytes in the column ``at``."""
    if not rows:
        return rows
    columns = list(zip(*rows, strict=True))
    columns[at] = tuple(restored(columns[at]))
    return list(zip(*columns, strict=True))


def _parts(bodies: Sequence[bytes]) -> list[Sequence[bytes]]:
    return [bodies[at : at + _AT_ONCE] for at in range(0, len(bodies), _AT_ONCE)]


def _shortened(bodies: Sequence[bytes]) -> list[str]:
    whole = text = b"\n".join(bodies)
    asked, answered = _INTENT in whole, _COMMIT in whole
    unsought = frozenset[bytes]() if asked is answered else _ANSWERED if asked else _ASKED
    for code, piece in CODES.items():
        if code not in unsought:
            text = text.replace(piece, code)
    stored = text.decode().split("\n")
    if len(stored) != len(bodies) or _plain(text) != whole:
        raise LedgerError(
            "an event holds a control character, which canonical JSON never does",
            code="ledger_corrupt",
            hint="nothing of it was written; run payonce trail verify on the ledger it came from",
        )
    return stored


def _restored(stored: Sequence[bytes]) -> Sequence[bytes]:
    bodies = _plain(b"\n".join(stored)).split(b"\n")
    # Somebody put a line break into one: none that this program wrote has any.
    return bodies if len(bodies) == len(stored) else list(map(_plain, stored))


def _plain(text: bytes) -> bytes:
    for code, piece in CODES.items():
        text = text.replace(code, piece)
    return text
