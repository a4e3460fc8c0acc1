"""A share of a check in a process of its own: shares need nothing of each other, and there is more than one core.

``python -m payonce.trail.beside URL`` reads a share from standard input and prints what it came to, as MessagePack.
"""

from __future__ import annotations

import subprocess
import sys

import msgspec

from payonce.ledger.connect import connect_trail
from payonce.trail.share import Done, Share, work


class Beside:
    """A share under way in another process."""

    def __init__(self, url: str, share: Share) -> None:
        command = [sys.executable, "-m", "payonce.trail.beside", url]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)  # noqa: S603
        self._share = msgspec.msgpack.encode(share)
        assert self._process.stdin is not None
        self._process.stdin.write(self._share)
        self._process.stdin.close()
        self._process.stdin = None

    def result(self) -> Done | None:
        """What it came to; None where the process failed."""
        out, _ = self._process.communicate()
        return None if self._process.returncode else msgspec.msgpack.decode(out, type=Done)

    def stop(self) -> None:
        """Ends the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def main(url: str) -> None:
    """The other process."""
    share = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Share)
    reads = connect_trail(url)
    with reads.snapshot():
        done = work(reads, reads.batches(), share)
    sys.stdout.buffer.write(msgspec.msgpack.encode(done))


if __name__ == "__main__":
    main(*sys.argv[1:])
