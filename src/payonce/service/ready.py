"""Ready batch files for pay-per-call APIs, shipped as plain files: what a user gets is the file, to read and to change.

Each is one whole batch file with a small input. Nothing in the code knows these APIs: all that is known of them stands in
the file.
"""

from __future__ import annotations

from importlib import resources
from typing import Final

import orjson

from payonce.core.errors import UsageError

# The models that the sample inputs ask for.
_MODELS: Final = {
    "openrouter": "openai/gpt-4o-mini",
    "openai": "gpt-4o-mini",
    "anthropic": "claude-3-5-haiku-latest",
    "metered": "small",
    "aggregator": "small",
}
NAMES: Final = tuple(_MODELS)
_TOPICS: Final = ("a ledger", "a receipt", "an invoice", "a refund", "a balance")


def files(name: str) -> dict[str, str]:
    """The files of a template by name. Raises UsageError ``unknown_template``."""
    if name not in _MODELS:
        raise UsageError(
            f"there is no template {name!r}", code="unknown_template", hint=f"there are {', '.join(NAMES)}"
        )
    text = resources.files("payonce.service").joinpath("templates", f"{name}.toml").read_text(encoding="utf-8")
    return {"batch.toml": text, "prompts.jsonl": sample(_MODELS[name])}


def sample(model: str, count: int = 5) -> str:
    """A sample input: a record a line."""
    rows = [
        {"record": f"record-{n + 1:04}", "model": model, "prompt": f"Say in one sentence what {topic} is for."}
        for n, topic in enumerate((_TOPICS * count)[:count])
    ]
    return "".join(orjson.dumps(row).decode() + "\n" for row in rows)
