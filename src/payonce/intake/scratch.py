"""Temporary files that hold what would not fit into memory: unlinked from the start, readable by nobody else."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from typing import IO


def scratch_file() -> IO[bytes]:
    """A new empty file that is gone when it is closed, whatever ends the process. Raises OSError where there is no room."""
    return tempfile.TemporaryFile(prefix="payonce-")


def give_back(file: IO[bytes]) -> None:
    """Closes it, and with that removes it; what it still had to write is no loss, even where there is no room for it."""
    with suppress(OSError):
        file.close()
