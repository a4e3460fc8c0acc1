"""Builds providers of kind ``python``: around a given function, or one named in the batch file."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from payonce.core.errors import ConfigError
from payonce.core.model import Declaration
from payonce.providers.python import PythonProvider
from payonce.providers.python_operation import OperationSettings
from payonce.providers.registry import Wanted
from payonce.providers.settings_values import bad_setting, read


class PythonTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[provider]`` with ``kind = "python"``: ``function = "package.module:name"``, importable from the batch file's
    folder or the environment. What it promises is said by its ``@payonce.operation``."""

    kind: str = "python"
    function: str | None = None


def build(table: Mapping[str, Any], wanted: Wanted) -> PythonProvider:
    """The provider around the function. Raises ConfigError where there is none."""
    settings = read(table, PythonTable)
    function = wanted.function or _load(settings.function, wanted.base)
    return PythonProvider(function, operation=wanted.operation, batch=wanted.batch, threads=wanted.concurrency)


def _load(name: str | None, base: str) -> Callable[..., Any]:
    module_name, colon, attribute = (name or "").partition(":")
    if not colon or not module_name or not attribute:
        raise bad_setting("[provider] function does not name a function", hint='write function = "refunds:refund"')
    if base not in sys.path:
        sys.path.insert(0, base)
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"[provider] function {name!r} cannot be imported: {error}",
            code="no_function",
            hint="the module is looked for in the batch file's folder and the Python environment",
        ) from error
    if not callable(found):
        raise bad_setting(f"[provider] function {name!r} is not a function", hint="name a function")
    function: Callable[..., Any] = found
    return function


def describe() -> Declaration:
    """What a Python provider declares before its decorator says more: nothing is promised."""
    return OperationSettings().declaration("any")
