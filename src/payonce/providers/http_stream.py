"""Server-sent events put together into one document, so that a streamed answer is read exactly as a whole one.

Nothing is believed of a stream before its end was seen: one that breaks off was paid for, but what it says of usage and
cost is not final. Numbers stay exact. The event format is that of the HTML standard (server-sent events); the two ways of
putting events together are those of OpenAI's chat completions, which many APIs share, and of Anthropic's messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from payonce.providers import answers_values as values
from payonce.providers.answers_paths import Path, is_true
from payonce.providers.transport import Answer

Kind = Literal["openai", "anthropic", "events"]
_DONE: Final = "[DONE]"
_PER_CHUNK: Final = frozenset({"choices", "object"})
# What a chunk repeats rather than continues.
_ONCE: Final = frozenset({"role", "id", "type", "name", "index"})


class StreamCut(Exception):
    """The stream ended before its end. ``reference`` is the call's id, as far as it was shown."""

    def __init__(self, message: str, *, reference: str | None = None) -> None:
        super().__init__(message)
        self.reference = reference


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name, empty where it has none, and its data as text."""

    name: str
    data: str


class _Text(list[str]):
    """A text that still grows: joined once, at the end."""


@dataclass(frozen=True, slots=True)
class Stream:
    """How a provider's streams are put together. ``end`` is a condition on the last event, for ``events`` alone."""

    kind: Kind
    end: Path | None = None

    def document(self, answer: Answer) -> Any:
        """The stream as one document. Raises StreamCut where it is not whole, ValueError where it is no stream."""
        return document(answer, self.kind, end=self.end)


def is_stream(answer: Answer) -> bool:
    """Whether an answer is a stream of events; an error often is a plain document although a stream was asked for."""
    kind = answer.header("content-type") or ""
    return kind.partition(";")[0].strip().lower() == "text/event-stream"


def document(answer: Answer, kind: Kind, *, end: Path | None = None) -> Any:
    """The stream as one document. Raises StreamCut where it is not whole, ValueError where it is no stream."""
    found = list(events(answer.body))
    return _READERS[kind](found, end)


def events(body: bytes) -> Iterator[Event]:
    """The events of a stream. What is not followed by a blank line was not sent to its end, and is left out.

    Raises ValueError for bytes that are not UTF-8.
    """
    text = body.decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    name, data = "", list[str]()
    for line in text.split("\n")[:-1]:
        if line == "":
            if data:
                yield Event(name, "\n".join(data))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value


def _openai(found: list[Event], end: Path | None) -> Any:
    """Chunks of chat completions: deltas continue each other, the usage comes last, [DONE] ends it."""
    whole: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    done = False
    for event in found:
        if event.data == _DONE:
            done = True
            break
        chunk = _object(event)
        for choice in chunk.get("choices") or ():
            _choice(choices, choice)
        whole |= {name: value for name, value in chunk.items() if name not in _PER_CHUNK and value is not None}
    for choice in choices.values():
        if choice.get("finish_reason") == "error":
            whole.setdefault("error", {"code": "error", "message": "the stream ended with an error"})
    if not done and "error" not in whole:
        raise StreamCut("the stream ended without [DONE]", reference=values.reference(whole.get("id")))
    return {**whole, "object": "chat.completion", "choices": [_joined(choices[n]) for n in sorted(choices)]}


def _choice(choices: dict[int, dict[str, Any]], choice: Any) -> None:
    if not isinstance(choice, dict):
        raise ValueError("a choice of a chunk is no object")
    index = choice.get("index", 0)
    if not isinstance(index, int):
        raise ValueError("a choice of a chunk has no number")
    here = choices.setdefault(index, {"index": index, "message": {}})
    for name, value in choice.items():
        if name == "delta" and isinstance(value, dict):
            _continue(here["message"], value)
        elif name == "text" and isinstance(value, str):
            _continue(here, {"text": value})
        elif value is not None and name != "delta":
            here[name] = value


def _continue(whole: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Adds a delta to what is there: texts are continued, lists merged by index, all else replaced."""
    for name, value in delta.items():
        there = whole.get(name)
        if value is None:
            continue
        if isinstance(value, str) and name not in _ONCE:
            if isinstance(there, _Text):
                there.append(value)
            else:
                whole[name] = _Text([value])
        elif isinstance(value, dict):
            _continue(whole.setdefault(name, {}) if isinstance(there, dict | None) else {}, value)
        elif isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
            entries = whole.setdefault(name, {})
            for place, entry in enumerate(value):
                _continue(entries.setdefault(entry.get("index", place), {}), entry)
        elif value != "" or there is None:
            whole[name] = value


def _anthropic(found: list[Event], end: Path | None) -> Any:
    """Events of messages: a start with the message, blocks and their deltas, a last delta with the usage, a stop."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    done = False
    for event in found:
        data = _object(event)
        match data.get("type") or event.name:
            case "message_start":
                message = dict(data.get("message") or {})
            case "content_block_start":
                blocks[data["index"]] = {
                    name: _Text([value]) if isinstance(value, str) and name not in _ONCE else value
                    for name, value in dict(data.get("content_block") or {}).items()
                }
            case "content_block_delta":
                _block(blocks.setdefault(data["index"], {}), dict(data.get("delta") or {}))
            case "message_delta":
                message |= dict(data.get("delta") or {})
                message["usage"] = {**dict(message.get("usage") or {}), **dict(data.get("usage") or {})}
            case "message_stop":
                done = True
            case "error":
                message["error"] = data.get("error") or {"message": "the stream ended with an error"}
            case _:
                pass  # ping, and what may be added later
    if not done and "error" not in message:
        raise StreamCut("the stream ended without message_stop", reference=values.reference(message.get("id")))
    return {**message, "content": [_block_done(blocks[n]) for n in sorted(blocks)]}


def _block(block: dict[str, Any], delta: dict[str, Any]) -> None:
    kind = str(delta.pop("type", ""))
    if kind == "input_json_delta":
        _continue(block, {"partial_json": str(delta.get("partial_json", ""))})
    else:
        _continue(block, delta)


def _block_done(block: dict[str, Any]) -> Any:
    done = _joined(block)
    if "partial_json" in done:
        text = done.pop("partial_json")
        done["input"] = values.parse(text.encode()) if text else {}
    return done


def _events(found: list[Event], end: Path | None) -> Any:
    """All events as they are, and the last one by itself; ``end`` is a condition on that one."""
    shown = [_any(event) for event in found if event.data != _DONE]
    last = shown[-1] if shown else None
    if last is None or (end is not None and not is_true(end.find(last))):
        raise StreamCut("the stream ended before its last event")
    return {"events": shown, "last": last}


def _any(event: Event) -> Any:
    try:
        return values.parse(event.data.encode())
    except ValueError:
        return event.data


def _object(event: Event) -> dict[str, Any]:
    found = values.parse(event.data.encode())
    if not isinstance(found, dict):
        raise ValueError("an event of the stream is no object")
    return found


def _joined(value: Any) -> Any:
    """Growing texts as texts, lists that were merged by index as lists."""
    match value:
        case _Text():
            return "".join(value)
        case dict() if value and all(isinstance(key, int) for key in value):
            return [_joined(value[key]) for key in sorted(value)]
        case dict():
            return {name: _joined(entry) for name, entry in value.items()}
        case list():
            return [_joined(entry) for entry in value]
        case _:
            return value


_READERS: Final[Mapping[str, Callable[[list[Event], Path | None], Any]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "events": _events,
}
