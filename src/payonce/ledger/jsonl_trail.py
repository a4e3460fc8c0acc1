"""The trail of a JSON Lines ledger, read into memory of its own. See ledger.trail_port."""

from __future__ import annotations

from pathlib import Path

from payonce.ledger.jsonl_file import JsonlFile
from payonce.ledger.jsonl_tables import JsonlTables
from payonce.ledger.rows_trail import RowsTrail
from payonce.ledger.sqlite_open import no_ledger
from payonce.ledger.trail_port import PLACE_SHIFT


class JsonlTrail(RowsTrail):
    """A ledger's trail as it was when it was opened: the whole file is read once, and each digest in it is checked. There
    are no marks: a changed event does not fit the digest of its lines.

    Raises LedgerError ``ledger_corrupt`` with the line where one does not fit."""

    rows: JsonlTables

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise no_ledger(path)
        self._file = JsonlFile(path, write=False)
        try:
            self.rows = JsonlTables(self._file)
            self.rows.catch_up()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """See ledger.trail_port."""
        self._file.close()

    def about(self, number: int, n: int) -> list[tuple[int, bytes]]:
        """See ledger.trail_port."""
        return [(seq, self._body(seq)) for seq in self.rows.trail.seqs(number, n)]

    def _body(self, seq: int) -> bytes:
        return self.rows.trail.body(seq) or b""

    def _place(self, seq: int) -> int | None:
        place = self.rows.trail.place_of(seq)
        return None if place is None else place[0] << PLACE_SHIFT | place[1]
