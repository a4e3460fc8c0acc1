"""Rules of the house that no other check keeps."""

from __future__ import annotations

import ast
import re
from pathlib import Path

# An import of a private name, on one line or on several.
SUSPECT = re.compile(r"\bimport\b.*\b_[A-Za-z]|^\s+_[A-Za-z]\w*( as \w+)?,$", re.MULTILINE)
SOURCES = Path(__file__).parents[2] / "src" / "payonce"


def test_no_module_takes_what_is_private_to_another() -> None:
    """A name that begins with an underscore is its module's own: what two need has a home of its own, with a name."""
    taken = []
    for path in sorted(SOURCES.rglob("*.py")):
        text = path.read_text()
        if not SUSPECT.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("payonce"):
                private = [a.name for a in node.names if a.name.startswith("_") and not a.name.startswith("__")]
                taken += [
                    f"{path.relative_to(SOURCES)}:{node.lineno} takes {name} of {node.module}" for name in private
                ]
    assert not taken
