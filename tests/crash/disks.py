"""Disks of a test's own that really fail: filled, run out of space underneath, turned read-only, cut off from power.

They need root and what every Linux kernel has: tmpfs, and ext4 on a loop device. Elsewhere the tests that use them skip
and say why. Each disk is a folder under the temporary folder, where a database server's own user may enter as well.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# <uapi/linux/ext4.h>: EXT4_IOC_SHUTDOWN, and its flag for "nothing is flushed before": what was not synced is lost.
_SHUTDOWN, _NO_FLUSH = 0x8004587D, 2


def fill(folder: Path) -> Path:
    """Takes all the room there is."""
    filler = folder / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
    except OSError:
        pass
    return filler


class Small:
    """A tmpfs of a few megabytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def full(self) -> None:
        """There is no room any more."""
        fill(self.folder)

    def mend(self) -> None:
        """There is room again."""
        (self.folder / "filler").unlink(missing_ok=True)


class Device:
    """An ext4 file system on a block device of its own, whose blocks are in a file on a tmpfs."""

    def __init__(self, folder: Path, below: Path, device: str) -> None:
        self.folder = folder
        self._below = below
        self._device = device

    def io_error(self) -> None:
        """Each write and each fsync from now on fails with EIO; what was not synced before is lost."""
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, _SHUTDOWN, struct.pack("I", _NO_FLUSH))
        finally:
            os.close(handle)

    lose_power = io_error

    def read_only(self) -> None:
        """The kernel takes the file system for broken and lets nobody write any more, under open files too."""
        name = Path(self._device).name
        Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("a test")

    def starve(self) -> None:
        """The storage underneath has no room: writes are taken, and the fsync behind them fails."""
        fill(self._below)

    def mend(self) -> None:
        """Room, and mounted anew: its log is replayed. Nobody may have a file open."""
        (self._below / "filler").unlink(missing_ok=True)
        unmount(self.folder)
        run("mount", "-t", "ext4", "-o", "errors=remount-ro", self._device, str(self.folder))


def run(*command: str) -> str:
    """A system command that works."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def unmount(folder: Path) -> None:
    """Waits for whoever still has a file open there."""
    until = time.monotonic() + 20
    while subprocess.run(["umount", str(folder)], check=False, capture_output=True).returncode:
        if time.monotonic() > until:
            run("umount", "--lazy", str(folder))
            raise AssertionError(f"somebody still uses {folder}")
        time.sleep(0.05)


def mount_memory(folder: Path, size: str) -> None:
    """A small disk. Skips loudly where mounting is not allowed."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a tmpfs: the full disk is then only tested by RLIMIT_FSIZE")


@contextmanager
def _folder() -> Iterator[Path]:
    """Under the temporary folder, open to all: a test's own is closed to a server's user."""
    folder = Path(tempfile.mkdtemp(prefix="payonce-disk-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def small(size: str = "64m") -> Iterator[Small]:
    """A small disk until the end of the block."""
    with _folder() as base:
        mount_memory(base / "disk", size)
        try:
            yield Small(base / "disk")
        finally:
            unmount(base / "disk")


@contextmanager
def device(size: str = "160m", below: str = "96m") -> Iterator[Device]:
    """A device until the end of the block: it promises ``size`` and has ``below``, as thin storage does."""
    with small(below) as storage, _folder() as base:
        image, folder = storage.folder / "image", base / "disk"
        folder.mkdir()
        with image.open("wb") as file:
            file.truncate(int(size.removesuffix("m")) << 20)
        try:
            run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1,nodiscard", str(image))
            name = run("losetup", "--find", "--show", str(image))
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"needs mkfs.ext4 and a loop device: the failing disk is then only a wrapped store ({error})")
        try:
            run("mount", "-t", "ext4", "-o", "errors=remount-ro", name, str(folder))
            folder.chmod(0o755)
            try:
                yield Device(folder, storage.folder, name)
            finally:
                unmount(folder)
        finally:
            run("losetup", "--detach", name)
