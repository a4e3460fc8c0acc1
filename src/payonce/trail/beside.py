"""A share of a check in a process of its own: shares need nothing of each other, and there is more than one core.

``python -m payonce.trail.beside`` reads the ledger's address, which may hold a password and so stands in no list of
processes, and a share from standard input. It prints lines under seals, as it comes upon
them, then what the share came to: frames of a batch number and a length, in ``_HEAD``, and the bytes. Lines wait in the
pipe until they are asked for, so that they are never all in memory.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from typing import Final

import msgspec

from payonce.ledger.connect import connect_trail
from payonce.trail.share import Done, Lines, Share, work

_HEAD: Final = struct.Struct("<qq")
_RESULT: Final = -1


class Beside:
    """A share under way in another process."""

    def __init__(self, url: str, share: Share) -> None:
        # -P: what lies in the working directory is not taken for a module.
        command = [sys.executable, "-P", "-m", "payonce.trail.beside"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)  # noqa: S603
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.msgpack.encode((url, share)))
        self._process.stdin.close()
        self._process.stdin = None

    def result(self, lines: Lines) -> Done | None:
        """Passes its lines on, then waits for what it came to; None where the process failed."""
        assert self._process.stdout is not None
        read, done = self._process.stdout.read, None
        while len(head := read(_HEAD.size)) == _HEAD.size:
            number, length = _HEAD.unpack(head)
            body = read(length)
            if len(body) != length:
                return None
            if number == _RESULT:
                done = msgspec.msgpack.decode(body, type=Done)
            else:
                lines(number, body)
        return None if self._process.wait() else done

    def stop(self) -> None:
        """Ends the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.wait()


def main() -> None:
    """The other process."""
    url, share = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=tuple[str, Share])

    def send(number: int, body: bytes) -> None:
        sys.stdout.buffer.write(_HEAD.pack(number, len(body)))
        sys.stdout.buffer.write(body)

    reads = connect_trail(url)
    with reads.snapshot():
        done = work(reads, reads.batches(), share, send)
    send(_RESULT, msgspec.msgpack.encode(done))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
