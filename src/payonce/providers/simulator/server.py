"""The simulator as an HTTP server, inside an event loop (`start`) or as a process of its own (`serve`).

It listens on the loopback interface only, unless told otherwise: it has no authentication worth the name.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import ipaddress
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from payonce.providers.simulator.behaviours import Config
from payonce.providers.simulator.http import Connection
from payonce.providers.simulator.opening import open_world
from payonce.providers.simulator.world import World

_PARENT_CHECK_S = 0.2
_BACKLOG = 1024


class Server:
    """A running server. `url` has no trailing slash; `world` is the state behind it, in the same process."""

    def __init__(self, world: World, *, host: str) -> None:
        self.world = world
        self._host = host
        self._port = 0
        self._listener: asyncio.Server | None = None
        self._connections: set[Connection] = set()

    @property
    def url(self) -> str:
        """Where the server listens, or listened last."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    async def listen(self, port: int | None = None) -> None:
        """Begins to accept connections; without a port, on the one from before. Raises OSError."""
        self._listener = await asyncio.get_running_loop().create_server(
            lambda: Connection(self.world, open_connections=self._connections),
            self._host,
            self._port if port is None else port,
            backlog=_BACKLOG,
        )
        self._port = self._listener.sockets[0].getsockname()[1]

    async def refuse_connections(self) -> None:
        """Stops listening and drops everyone: new connections are refused until `listen` is called again."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in tuple(self._connections):
            connection.abort()
        await asyncio.sleep(0)

    async def close(self) -> None:
        """Ends the server and every connection, and gives the state file back. The books stay readable."""
        await self.refuse_connections()
        self.world.close()


async def start(config: Config, host: str = "127.0.0.1", port: int = 0, *, allow_remote: bool = False) -> Server:
    """A running server; port 0 takes a free one.

    Raises ValueError for an address that others can reach, unless `allow_remote`; OSError where it cannot listen;
    JournalError where the configuration's state file cannot be used.
    """
    if not allow_remote and not _is_loopback(host):
        raise ValueError(f"{host} can be reached by others; the simulator listens on the loopback interface only")
    server = Server(open_world(config), host=host)
    await server.listen(port)
    return server


def serve(
    config: Config,
    host: str,
    port: int,
    ready: Callable[[str], None],
    *,
    parent_pid: int | None = None,
    allow_remote: bool = False,
) -> None:
    """Serves until SIGTERM or SIGINT; calls `ready` with the URL once connections are accepted.

    With `parent_pid` it also ends once that process is gone, so that no test run leaves a server behind. Must run in
    the main thread. Raises as `start` does.
    """
    _run(_serve(config, host, port, ready, parent_pid=parent_pid, allow_remote=allow_remote))


async def _serve(
    config: Config,
    host: str,
    port: int,
    ready: Callable[[str], None],
    *,
    parent_pid: int | None,
    allow_remote: bool,
) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, ended.set)
        except NotImplementedError:  # pragma: no cover - Windows has no handlers on its loops
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(ended.set))
    server = await start(config, host, port, allow_remote=allow_remote)
    ready(server.url)
    is_child = parent_pid is not None and os.getppid() == parent_pid
    while not ended.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), None if parent_pid is None else _PARENT_CHECK_S)
        if parent_pid is not None and _is_gone(parent_pid, is_child=is_child):
            break
    await server.close()


def _is_gone(pid: int, *, is_child: bool) -> bool:
    """Whether the process has ended. A child is given to another parent; that is surer than a number used again."""
    if is_child:
        return os.getppid() != pid
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _run(main: Coroutine[Any, Any, None]) -> None:
    """Runs on uvloop where it is installed: more requests a second, nothing else."""
    # The books only grow and hold no cycles; walking through them again and again would cost a fifth of the speed.
    gc.freeze()
    gc.set_threshold(100_000, 50, 1_000)
    factory = None
    if sys.platform != "win32":
        with contextlib.suppress(ImportError):
            factory = importlib.import_module("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)
