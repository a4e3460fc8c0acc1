"""`python -m payonce.providers.simulator`: the simulator as a process of its own; prints its URL and serves."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from payonce.providers.simulator.behaviours import Config, load
from payonce.providers.simulator.journal import JournalError
from payonce.providers.simulator.server import serve
from payonce.providers.simulator.values import ConfigError


def main(arguments: list[str] | None = None) -> int:
    """Serves until a signal. Returns 2 where the configuration or the address cannot be used, else 0."""
    parser = argparse.ArgumentParser(prog="payonce.providers.simulator", description="A fake payment provider.")
    parser.add_argument("--config", type=Path, help="TOML file of behaviours")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--parent-pid", type=int, help="end when this process is gone")
    parser.add_argument("--allow-remote", action="store_true", help="listen on an address that others can reach")
    asked = parser.parse_args(arguments)
    try:
        config = load(asked.config) if asked.config else Config()
        serve(config, asked.host, asked.port, _announce, parent_pid=asked.parent_pid, allow_remote=asked.allow_remote)
    except (ConfigError, JournalError, ValueError, OSError) as problem:
        sys.stderr.write(f"simulator: {problem}\n")
        return 2
    return 0


def _announce(url: str) -> None:
    sys.stdout.write(url + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
