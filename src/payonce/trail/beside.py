"""A share of a check in a process of its own: shares need nothing of each other, and there is more than one core.

``python -m payonce.trail.beside`` reads the ledger's address, which may hold a password and so stands in no list of
processes, and a share from standard input. It prints lines under seals, as it comes upon
them, then what the share came to: frames of a batch number and a length, in ``_HEAD``, and the bytes. Lines wait in the
pipe until they are taken, so that they are never all in memory. They are taken by a thread, as soon as those before them
are: were they left until this process is through with its own share, the other one would stand still with a full pipe.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from payonce.ledger.connect import connect_trail
from payonce.trail.share import Done, Lines, Share, work

_HEAD: Final = struct.Struct("<qq")
_RESULT: Final = -1
# What the pipe holds where that can be set: the thread gets its turn only every few milliseconds.
_PIPE: Final = 1 << 20


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
        _widen(self._process.stdout.fileno())
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


class Following:
    """Takes the lines of other processes, and what their shares came to, in order, in a thread of its own."""

    def __init__(self, others: Sequence[Beside], lines: Lines) -> None:
        self._others, self._lines = others, lines
        self._found: list[Done | None] = []
        self._thread = threading.Thread(target=self._follow, name="payonce-verify-lines")

    def start(self) -> None:
        """From here on the lines of the others are taken: those before them have to be taken already."""
        if self._others:
            self._thread.start()

    def results(self) -> list[Done | None]:
        """What the shares came to, once all are done; None where a process failed."""
        if self._others:
            self._thread.join()
        return self._found + [None] * (len(self._others) - len(self._found))

    def stop(self) -> None:
        """Ends the processes that still run, and the thread with them."""
        for other in self._others:
            other.stop()
        if self._thread.ident is not None:
            self._thread.join()

    def _follow(self) -> None:
        # A process that was stopped, or says what cannot be understood, came to nothing.
        with suppress(OSError, ValueError, LookupError, msgspec.MsgspecError):
            for other in self._others:
                self._found.append(other.result(self._lines))


def _widen(pipe: int) -> None:
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


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
