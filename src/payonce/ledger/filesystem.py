"""What kind of file system a path is on: SQLite's locks and shared memory need a local one.

The source is /proc/self/mountinfo (proc(5)); where there is none (macOS), the kind is unknown and nothing is refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from payonce.core.errors import LedgerPlaceError

MOUNTINFO: Final = Path("/proc/self/mountinfo")
# Locks or shared memory of these are not the same on all machines that mount them (https://sqlite.org/wal.html, "all
# processes must be on the same host"). FUSE file systems are refused as a whole: most are remote, few share memory.
NETWORK: Final = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "ncpfs",
        "afs",
        "coda",
        "ceph",
        "9p",
        "v9fs",
        "lustre",
        "gpfs",
        "beegfs",
        "glusterfs",
        "orangefs",
        "pvfs2",
        "ocfs2",
        "gfs",
        "gfs2",
        "davfs",
        "acfs",
        "pohmelfs",
        "prl_fs",
        "vboxsf",
        "vmhgfs",
    ]
)


def type_of(path: Path, *, mountinfo: str | None = None) -> str | None:
    """The type of the file system that holds a path (``ext4``, ``nfs4``, ``fuse.sshfs``), None where unknown."""
    if mountinfo is None:
        try:
            mountinfo = MOUNTINFO.read_text("utf-8", "surrogateescape")
        except OSError:
            return None
    real = path.resolve()
    best: tuple[int, str] | None = None
    for line in mountinfo.splitlines():
        fields, _, rest = line.partition(" - ")
        parts = fields.split(" ")
        if len(parts) < 5 or not rest:
            continue
        point = Path(_unescape(parts[4]))
        # A later mount over the same point hides the earlier one.
        if real.is_relative_to(point) and (best is None or len(point.parts) >= best[0]):
            best = (len(point.parts), rest.split(" ")[0])
    return best[1] if best else None


def refuse_network(path: Path) -> None:
    """Raises LedgerPlaceError ``network_file_system`` where SQLite's locks cannot be trusted."""
    kind = type_of(path)
    if kind is not None and (kind in NETWORK or kind.startswith("fuse.") or kind == "fuse"):
        raise LedgerPlaceError(
            f"ledger {path} is on a network file system ({kind}), where SQLite's locks cannot be trusted",
            code="network_file_system",
            hint="put the ledger on a local disk, or use a postgresql:// ledger",
        )


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), text)
