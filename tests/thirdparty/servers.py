"""Starts third-party servers on a free loopback port, and ends them again by their process id."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.thirdparty import parts

# Both packages' own commands listen on all interfaces; these few lines bind them to loopback.
_MOCK = (
    "process.env.LOG_LEVEL='silent';"
    "require('http').createServer(require('stripe-stateful-mock').createExpressApp())"
    ".listen(+process.argv[1],'127.0.0.1')"
)
# Its store is pickled into the temporary folder on every change, which nobody needs here.
_LOCALSTRIPE = (
    "import sys; from aiohttp import web; from localstripe import resources, server;"
    "resources.Store.dump_to_disk = lambda self: None;"
    "web.run_app(server.app, host='127.0.0.1', port=int(sys.argv[1]), access_log=None, print=None)"
)


@contextmanager
def stateful_mock() -> Iterator[str]:
    """stripe-stateful-mock: honours keys, refuses over-refunds; knows charges, not payment intents."""
    folder = parts.node_package(parts.STATEFUL_MOCK)
    with _serving(["node", "-e", _MOCK], cwd=folder, ready="/v1/refunds?limit=1") as url:
        yield url


@contextmanager
def localstripe() -> Iterator[str]:
    """localstripe: ignores keys and refuses no refund; knows charges and payment intents."""
    python = parts.python_environment(parts.LOCALSTRIPE)
    with _serving([str(python), "-c", _LOCALSTRIPE], cwd=python.parent, ready="/v1/refunds?limit=1") as url:
        yield url


@contextmanager
def prism(spec: Path) -> Iterator[str]:
    """Prism serving an OpenAPI file: refuses requests that its schema does not allow."""
    folder = parts.node_package(parts.PRISM)
    command = ["node", str(folder / "node_modules" / ".bin" / "prism"), "mock", "-h", "127.0.0.1", "-p"]
    with _serving(command, cwd=folder, ready="/", last=[str(spec)]) as url:
        yield url


@contextmanager
def _serving(command: list[str], *, cwd: Path, ready: str, last: list[str] | None = None) -> Iterator[str]:
    port = _free_port()
    process = subprocess.Popen(
        [*command, str(port), *(last or [])], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(process, url + ready)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    """Until the server answers anything at all."""
    until = time.monotonic() + 90
    while time.monotonic() < until:
        assert process.poll() is None, f"the server ended with {process.returncode}"
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"no answer from {url}")
