"""Paid calls in the shapes that well-known APIs give them: which path speaks which, and what an answer looks like. Pure.

The shapes are those of the public API references of OpenRouter, OpenAI and Anthropic, cut down to what a client of paid
calls reads: id, model, content, usage, cost. The provider's own shape is `/v1/calls`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import orjson

from payonce.providers.simulator.plan import Reply
from payonce.providers.simulator.store import Effect

OWN = "own"
PATHS = {
    "/v1/calls": OWN,
    "/api/v1/chat/completions": "openrouter",
    "/v1/chat/completions": "openai",
    "/v1/messages": "anthropic",
}
PREFIXES = {OWN: "call", "openrouter": "gen", "openai": "chatcmpl", "anthropic": "msg"}


def reply(effect: Effect, shown: dict[str, Any], *, stream: bool) -> Reply:
    """The answer to a call; `shown` is the call in the provider's own shape."""
    dialect = effect.detail.get("dialect", OWN)
    document = shown if dialect == OWN else _DOCUMENTS[dialect](effect)
    headers = (("X-Generation-Id", effect.id), ("X-Cost", shown["cost"]))
    if not stream:
        return Reply(200, _dump(document), headers=headers)
    events = {OWN: _own_events, "anthropic": _anthropic_events}.get(dialect, _chunks)(document)
    return Reply(200, b"".join(events), headers=headers, content_type="text/event-stream")


def document(effect: Effect, shown: dict[str, Any]) -> dict[str, Any]:
    """A call as a later read shows it."""
    dialect = effect.detail.get("dialect", OWN)
    return shown if dialect == OWN else _DOCUMENTS[dialect](effect)


def generation(effect: Effect) -> dict[str, Any]:
    """OpenRouter's account of one generation: what it cost, without its content."""
    detail = effect.detail
    return {
        "data": {
            "id": effect.id,
            "model": effect.target,
            "total_cost": _number(detail["exact_cost"]),
            "usage": _number(detail["exact_cost"]),
            "created_at": effect.executed_at // 1_000_000,
            "external_user": effect.ref,
            "tokens_prompt": detail["prompt_tokens"],
            "tokens_completion": detail["completion_tokens"],
            "cancelled": False,
            "finish_reason": "stop",
        }
    }


def _completion(effect: Effect) -> dict[str, Any]:
    detail = effect.detail
    message = {"role": "assistant", "content": detail["output"]}
    return {
        "id": effect.id,
        "object": "chat.completion",
        "created": effect.executed_at // 1_000_000,
        "model": effect.target,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": detail["prompt_tokens"],
            "completion_tokens": detail["completion_tokens"],
            "total_tokens": detail["tokens"],
        },
    }


def _routed(effect: Effect) -> dict[str, Any]:
    made = _completion(effect)
    made["usage"]["cost"] = _number(effect.detail["exact_cost"])
    return {**made, "provider": "Simulated"}


def _message(effect: Effect) -> dict[str, Any]:
    detail = effect.detail
    return {
        "id": effect.id,
        "type": "message",
        "role": "assistant",
        "model": effect.target,
        "content": [{"type": "text", "text": detail["output"]}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": detail["prompt_tokens"], "output_tokens": detail["completion_tokens"]},
    }


_DOCUMENTS = {"openrouter": _routed, "openai": _completion, "anthropic": _message}


def _chunks(made: dict[str, Any]) -> Iterator[bytes]:
    """Server-sent events as chat completions have them: chunks, one with the usage, and [DONE]."""
    text = made["choices"][0]["message"]["content"]
    shared: dict[str, Any] = {key: made[key] for key in ("id", "created", "model", "provider") if key in made}
    shared["object"] = "chat.completion.chunk"
    yield b": processing\n\n"
    for n, piece in enumerate(_pieces(text)):
        delta = {"role": "assistant", "content": piece} if n == 0 else {"content": piece}
        yield _event({**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**shared, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield _event({**shared, "choices": [], "usage": made["usage"]})
    yield b"data: [DONE]\n\n"


def _anthropic_events(made: dict[str, Any]) -> Iterator[bytes]:
    text, usage = made["content"][0]["text"], made["usage"]
    start = {**made, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _named("message_start", {"message": start})
    yield _named("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
    yield _named("ping", {})
    for piece in _pieces(text):
        yield _named("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": piece}})
    yield _named("content_block_stop", {"index": 0})
    delta = {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": usage["output_tokens"]}}
    yield _named("message_delta", delta)
    yield _named("message_stop", {})


def _own_events(made: dict[str, Any]) -> Iterator[bytes]:
    for piece in _pieces(made["output"]):
        yield _event({"type": "delta", "text": piece})
    yield _event({"type": "done", "call": made})


def _pieces(text: str) -> list[str]:
    size = max(1, -(-len(text) // 8))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + _dump(data) + b"\n\n"


def _named(name: str, data: dict[str, Any]) -> bytes:
    return b"event: " + name.encode() + b"\n" + _event({"type": name, **data})


def _dump(value: Any) -> bytes:
    return orjson.dumps(value)


def _number(text: str) -> orjson.Fragment:
    """A decimal as a JSON number with exactly its digits."""
    return orjson.Fragment(f"{Decimal(text):f}")
