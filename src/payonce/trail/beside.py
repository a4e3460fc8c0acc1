"""Hashing in a process of its own, beside the replay: the two need nothing of each other, and there are two cores.

``python -m payonce.trail.beside URL SIZE SIZES`` prints what it found as JSON. It reads and prints, nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict

import orjson

from payonce.ledger.connect import connect_trail
from payonce.trail.scan import Scanned, scan
from payonce.trail.seals import broken_seals


class Hashing:
    """A scan of the whole trail and of all seals, under way in another process."""

    def __init__(self, url: str, *, size: int, sizes: Sequence[int]) -> None:
        wanted = ",".join(map(str, sizes))
        command = [sys.executable, "-m", "payonce.trail.beside", url, str(size), wanted]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603

    def result(self) -> tuple[Scanned, list[int]] | None:
        """What it found; None where the process failed: then whoever asked does the work itself."""
        out, _ = self._process.communicate()
        if self._process.returncode:
            return None
        said = orjson.loads(out)
        found = Scanned(**said["scanned"])
        found.roots = {int(size): bytes.fromhex(root) for size, root in said["roots"].items()}
        found.bad_nodes = [(level, index) for level, index in found.bad_nodes]
        return found, said["seals"]

    def stop(self) -> None:
        """Ends the process if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


def main(url: str, size: str, sizes: str) -> None:
    """The other process."""
    reads = connect_trail(url)
    with reads.snapshot():
        found = scan(reads, size=int(size), sizes=[int(s) for s in sizes.split(",") if s])
        seals = broken_seals(reads, reads.batches())
    roots = {str(at): root.hex() for at, root in found.roots.items()}
    found.roots = {}
    sys.stdout.buffer.write(orjson.dumps({"scanned": asdict(found), "roots": roots, "seals": seals}))


if __name__ == "__main__":
    main(*sys.argv[1:])
