"""Official SDKs: optional parts, imported when a batch needs them, with everything off that acts on its own.

An SDK here only shapes requests. It never opens a connection, so its retries, telemetry and logging have nothing to act
on; they are switched off all the same, should a future version begin earlier.
"""

from __future__ import annotations

import importlib
import logging
from typing import Any

from payonce.core.errors import ConfigError


def load(module: str, *, extra: str) -> Any:
    """The SDK's module. Raises ConfigError ``missing_extra`` with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"the provider {extra} needs its official SDK ({module}), which is not installed",
            code="missing_extra",
            hint=f"in the project's folder: pip install '.[{extra}]'",
        ) from error


def quiet(*loggers: str) -> None:
    """Keeps an SDK's loggers from writing bodies, whatever level the program around us logs at."""
    for name in loggers:
        logging.getLogger(name).setLevel(logging.WARNING)
