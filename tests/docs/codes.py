"""Finds every stable code in the sources: of errors, of problems of an input, of outcomes and stops."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "payonce"
# Parts whose codes are not payonce's own: the simulated provider speaks as a provider, the test kit as a test.
_FOREIGN = ("providers/simulator/", "testing/")
_CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
# Calls whose first argument is a code.
_FIRST = {
    "Refused",
    "NotExecuted",
    "Unresolved",
    "AlreadyDone",
    "Stop",
    "LookupFailed",
    "StopBatch",
    "problem",
    "make",
    "note",
}


def codes() -> dict[str, str]:
    """Every code with the file that it first stands in."""
    found: dict[str, str] = {}
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        if name.startswith(_FOREIGN):
            continue
        for code in _codes_in(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(code, name)
    return found


def _codes_in(tree: ast.Module) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        given = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
        if _name(node.func) in _FIRST:
            given += node.args[:1]
        for value in given:
            found += [text for text in _constants(value) if _CODE.fullmatch(text)]
    return found


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _constants(value: ast.expr) -> list[str]:
    """The texts that an expression may be: itself, or either side of a condition."""
    match value:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.IfExp(body=body, orelse=orelse):
            return _constants(body) + _constants(orelse)
        case _:
            return []
