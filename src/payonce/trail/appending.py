"""Text added to a file whole or not at all: half a checkpoint or half a key would spoil what is added after it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def append_whole(path: Path, text: str) -> None:
    """Adds a text to a file, which is made if need be, and makes it durable. Raises OSError, and then the file is as it was."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        size = os.fstat(handle).st_size
        try:
            data = memoryview(text.encode("utf-8"))
            while data:  # a full disk may take a part without an error
                data = data[os.write(handle, data) :]
            os.fsync(handle)
        except OSError:
            with suppress(OSError):
                os.ftruncate(handle, size)
            raise
    finally:
        os.close(handle)
