"""Streamed answers: read to their end, put together as a whole answer is, and believed only once the end was seen."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from payonce.providers.answers_paths import Path
from payonce.providers.http_stream import Event, StreamCut, document, events
from payonce.providers.transport import Answer


def stream(text: str) -> Answer:
    return Answer(200, ((b"Content-Type", b"text/event-stream; charset=utf-8"),), text.encode())


def chunk(data: str) -> str:
    return f"data: {data}\n\n"


OPENAI = (
    ": OPENROUTER PROCESSING\n\n"
    + chunk('{"id":"gen-1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}')
    + chunk('{"id":"gen-1","choices":[{"index":1,"delta":{"role":"assistant","content":"B"},"finish_reason":"stop"}]}')
    + chunk('{"id":"gen-1","choices":[{"index":0,"delta":{"role":"assistant","content":"lo"},"finish_reason":null}]}')
    + chunk('{"id":"gen-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}')
    + chunk('{"id":"gen-1","choices":[],"usage":{"prompt_tokens":3,"cost":0.00000123}}')
)


def test_events_are_read_as_the_standard_has_them() -> None:
    """Comments, names, data of several lines, any line end, a byte order mark; an event without its blank line is none."""
    body = "\ufeff: hi\r\nevent: a\r\ndata: one\r\ndata: two\r\n\r\ndata:three\r\rid: 7\n\ndata: cut off\n"
    assert list(events(body.encode())) == [Event("a", "one\ntwo"), Event("", "three")]


def test_chunks_of_chat_completions_become_one() -> None:
    """Texts are joined by choice, roles are not repeated, the usage comes last and stays exact."""
    whole = document(stream(OPENAI + chunk("[DONE]")), "openai")
    assert [c["message"] for c in whole["choices"]] == [
        {"role": "assistant", "content": "Hello"},
        {"role": "assistant", "content": "B"},
    ]
    assert [c["finish_reason"] for c in whole["choices"]] == ["stop", "stop"]
    assert (whole["id"], whole["model"], whole["usage"]["cost"]) == ("gen-1", "m", Decimal("0.00000123"))


def test_arguments_of_tool_calls_are_joined() -> None:
    """By the index of the call; id and name come once."""
    parts = [
        '{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":"{\\"a\\""}}]}}]}',
        '{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}},{"index":1,"id":"t2","function":{"name":"g","arguments":"{}"}}]}}]}',
    ]
    whole = document(stream("".join(map(chunk, parts)) + chunk("[DONE]")), "openai")
    first, second = whole["choices"][0]["message"]["tool_calls"]
    assert (first["id"], first["function"]) == ("t1", {"name": "f", "arguments": '{"a":1}'})
    assert (second["id"], second["function"]["name"]) == ("t2", "g")


@pytest.mark.parametrize("end", range(1, 7))
def test_a_stream_without_its_end_is_not_whole(end: int) -> None:
    """Wherever it breaks off; the call's id is told where it was shown."""
    pieces = (OPENAI + chunk("[DONE]")).split("\n\n")
    with pytest.raises(StreamCut) as cut:
        document(stream("\n\n".join(pieces[:end]) + "\n\n"), "openai")
    assert cut.value.reference == (None if end == 1 else "gen-1")


def test_an_error_in_the_stream_is_in_the_document() -> None:
    """As its own event, or as the reason why a choice ended."""
    told = document(stream(OPENAI + chunk('{"id":"gen-1","error":{"code":502,"message":"upstream"}}')), "openai")
    assert told["error"]["message"] == "upstream"
    ended = document(stream(chunk('{"id":"g","choices":[{"index":0,"delta":{},"finish_reason":"error"}]}') + chunk("[DONE]")), "openai")  # fmt: skip
    assert ended["error"]


def test_events_of_messages_become_one() -> None:
    """Blocks of text and of tool input, the usage of start and end, the stop reason; without message_stop it is cut."""
    parts: list[tuple[str, str]] = [
        ("message_start", '{"type":"message_start","message":{"id":"msg_1","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}'),
        ("content_block_start", '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'),
        ("ping", '{"type":"ping"}'),
        ("content_block_delta", '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}'),
        ("content_block_delta", '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}'),
        ("content_block_stop", '{"type":"content_block_stop","index":0}'),
        ("content_block_start", '{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}'),
        ("content_block_delta", '{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\":"}}'),
        ("content_block_delta", '{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":" 1}"}}'),
        ("message_delta", '{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":15}}'),
        ("message_stop", '{"type":"message_stop"}'),
    ]  # fmt: skip
    text = "".join(f"event: {name}\ndata: {data}\n\n" for name, data in parts)
    whole = document(stream(text), "anthropic")
    assert whole["content"][0] == {"type": "text", "text": "Hello"}
    assert whole["content"][1] == {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}
    assert whole["usage"] == {"input_tokens": 9, "output_tokens": 15} and whole["stop_reason"] == "tool_use"
    with pytest.raises(StreamCut) as cut:
        document(stream(text.replace("message_stop", "ping")), "anthropic")
    assert cut.value.reference == "msg_1"
    failed = document(stream(text + 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'), "anthropic")  # fmt: skip
    assert failed["error"] == {"type": "overloaded_error"}


def test_other_streams_end_as_the_settings_say() -> None:
    """All events, and the last one by itself; without the last one's condition it is cut."""
    end = Path("type == 'done'", place="stream_end")
    text = chunk('{"type":"part"}') + chunk("plain") + chunk('{"type":"done","cost":"0.1"}')
    whole: Any = document(stream(text), "events", end=end)
    assert whole["last"]["cost"] == "0.1" and len(whole["events"]) == 3 and whole["events"][1] == "plain"
    with pytest.raises(StreamCut):
        document(stream(chunk('{"type":"part"}')), "events", end=end)
    with pytest.raises(StreamCut):
        document(stream(""), "events")
