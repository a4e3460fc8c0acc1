"""Cuts a provider's whole OpenAPI file down to some paths, so that Prism can serve it.

What is cut is the answers' depth: Stripe's expandable fields become the id they are unless somebody expands them, and the
error object loses the whole objects inside it, since Prism answers 500 where a schema is too deep for it. Of requests
one thing is loosened. Prism reads an object that a form leaves out as an empty one, and then misses what it must have: so
nothing is required inside of the form's objects, of which the adapter sends only metadata.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

_DEEP_IN_ERRORS: Final = ("payment_intent", "payment_method", "setup_intent", "source")


def cut(source: Path, target: Path, paths: Collection[str]) -> Path:
    """Writes the part of an OpenAPI file that these paths need. Raises KeyError for a path that it does not have."""
    whole = json.loads(source.read_text(encoding="utf-8"))
    kept = {path: _flat(whole["paths"][path]) for path in paths}
    for operation in (one for path in kept.values() for one in path.values() if isinstance(one, dict)):
        form = operation.get("requestBody", {}).get("content", {}).get("application/x-www-form-urlencoded", {})
        for field in form.get("schema", {}).get("properties", {}).values():
            _loosen(field)
    components: dict[str, dict[str, Any]] = {}
    waiting = list(_references(kept))
    while waiting:
        _, _, section, name = waiting.pop().split("/", 3)
        if name in components.setdefault(section, {}):
            continue
        part = _flat(whole["components"][section][name])
        if name == "api_errors":
            part["properties"] = {k: v for k, v in part["properties"].items() if k not in _DEEP_IN_ERRORS}
        components[section][name] = part
        waiting += _references(part)
    if "securitySchemes" in whole.get("components", {}):
        components["securitySchemes"] = whole["components"]["securitySchemes"]
    target.write_text(json.dumps({**whole, "paths": kept, "components": components}), encoding="utf-8")
    return target


def has(source: Path, paths: Collection[str]) -> bool:
    """Whether an OpenAPI file describes all of these paths."""
    return source.is_file() and set(paths) <= set(json.loads(source.read_text(encoding="utf-8"))["paths"])


def _flat(node: Any) -> Any:
    """A copy in which what may be expanded is its id."""
    if isinstance(node, dict):
        if "x-expansionResources" in node:
            return {"type": "string", **({"nullable": True} if node.get("nullable") else {})}
        return {name: _flat(inner) for name, inner in node.items()}
    return [_flat(inner) for inner in node] if isinstance(node, list) else node


def _loosen(node: Any) -> None:
    """Takes away what objects must have, at every depth."""
    if isinstance(node, dict):
        if isinstance(node.get("required"), list):
            del node["required"]
        for inner in node.values():
            _loosen(inner)
    elif isinstance(node, list):
        for inner in node:
            _loosen(inner)


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        found = node.get("$ref")
        if isinstance(found, str) and found.startswith("#/components/"):
            yield found
        for inner in node.values():
            yield from _references(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _references(inner)
