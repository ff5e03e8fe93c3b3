"""Translates the events of one Session into those of AG-UI. Pure.

Durable events decide, and live deltas only come before them: what a delta did not bring, the event
that ends its part brings. So a run that is read again has the same messages with the same ids.
"""

from collections.abc import Iterator
from typing import Final

from perdure.core.text import jsonc
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

_PREFIX: Final = "session.next."
_GOES_ON: Final = frozenset({"tool-calls", "tool_calls"})


class Translation:
    def __init__(self, prompt: str) -> None:
        """`prompt` is the id of the message that begins the run."""
        self._prompt = prompt
        self._sent: dict[str, str] = {}
        """What was sent of each part that is open."""
        self._deltas: dict[str, int] = {}
        self._steps: set[str] = set()
        self._calls: set[str] = set()
        self._finish = ""
        self.after = 0
        """The sequence of the last durable event."""
        self.failure: str | None = None
        """Why the newest step failed."""
        self.is_over = False
        """Whether a later prompt has begun a run of its own."""

    def translate(self, event: JsonObject) -> Iterator[JsonObject]:
        """The events of AG-UI for one event of the Session, durable or live."""
        seq = _seq(event)
        if seq is not None:
            if seq <= self.after or self.is_over:
                return
            self.after = seq
        data: JsonValue = event.get("data")
        if not self.is_over and jsonc.is_object(data):
            yield from self._translate(str(event.get("type", "")).removeprefix(_PREFIX), data)

    def close(self) -> Iterator[JsonObject]:
        """End what is open, so that the run can end."""
        for step in sorted(self._steps):
            yield {"type": "STEP_FINISHED", "stepName": step}
        self._steps.clear()

    def _translate(self, kind: str, data: JsonObject) -> Iterator[JsonObject]:
        message = str(data.get("assistantMessageID", ""))
        match kind:
            case "prompted" if data.get("messageID") != self._prompt:
                self.is_over = bool(self._finish) and self._finish not in _GOES_ON
            case "step.started":
                self.failure = None
                self._steps.add(message)
                yield {"type": "STEP_STARTED", "stepName": message}
            case "step.ended":
                self._finish = str(data.get("finish", ""))
                yield from self._end_step(message)
            case "step.failed":
                self._finish = "failed"
                error: JsonValue = data.get("error")
                self.failure = str(error.get("message")) if jsonc.is_object(error) else "failed"
                yield from self._end_step(message)
            case "text.started" | "text.delta" | "text.ended":
                yield from self._text(kind, f"{message}/{data.get('textID')}", data)
            case "reasoning.started" | "reasoning.delta" | "reasoning.ended":
                yield from self._reasoning(kind, f"{message}/{data.get('reasoningID')}", data)
            case _ if kind.startswith("tool."):
                yield from self._tool(kind, message, f"{message}/{data.get('callID')}", data)
            case _:
                return

    def _end_step(self, message: str) -> Iterator[JsonObject]:
        if message in self._steps:
            self._steps.discard(message)
            yield {"type": "STEP_FINISHED", "stepName": message}

    def _text(self, kind: str, part: str, data: JsonObject) -> Iterator[JsonObject]:
        begin: JsonObject = {"type": "TEXT_MESSAGE_START", "messageId": part, "role": "assistant"}
        content: JsonObject = {"type": "TEXT_MESSAGE_CONTENT", "messageId": part}
        if kind == "text.started" or self._is_unknown(kind, part):
            yield begin
        yield from self._grow(kind, part, data, content)
        if kind == "text.ended":
            yield {"type": "TEXT_MESSAGE_END", "messageId": part}

    def _reasoning(self, kind: str, part: str, data: JsonObject) -> Iterator[JsonObject]:
        if kind == "reasoning.started" or self._is_unknown(kind, part):
            yield {"type": "REASONING_START", "messageId": part}
            yield {"type": "REASONING_MESSAGE_START", "messageId": part, "role": "reasoning"}
        content: JsonObject = {"type": "REASONING_MESSAGE_CONTENT", "messageId": part}
        yield from self._grow(kind, part, data, content)
        if kind == "reasoning.ended":
            yield {"type": "REASONING_MESSAGE_END", "messageId": part}
            yield {"type": "REASONING_END", "messageId": part}

    def _tool(self, kind: str, message: str, call: str, data: JsonObject) -> Iterator[JsonObject]:
        if kind.startswith("tool.input."):
            if kind == "tool.input.started":
                yield self._begin_call(message, call, data.get("name"))
            if call in self._calls:
                content: JsonObject = {"type": "TOOL_CALL_ARGS", "toolCallId": call}
                yield from self._grow(kind, call, data, content)
                if kind == "tool.input.ended":
                    yield {"type": "TOOL_CALL_END", "toolCallId": call}
        elif kind == "tool.called" and call not in self._calls:
            yield self._begin_call(message, call, data.get("tool"))
            given = codec.encode(data.get("input", {})).decode()
            yield {"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": given}
            yield {"type": "TOOL_CALL_END", "toolCallId": call}
        elif kind in {"tool.success", "tool.failed"}:
            yield {
                "type": "TOOL_CALL_RESULT",
                "messageId": f"{call}/result",
                "toolCallId": call,
                "role": "tool",
                "content": _result(data),
            }

    def _begin_call(self, message: str, call: str, name: JsonValue) -> JsonObject:
        self._calls.add(call)
        return {
            "type": "TOOL_CALL_START",
            "toolCallId": call,
            "toolCallName": str(name),
            "parentMessageId": message,
        }

    def _is_unknown(self, kind: str, part: str) -> bool:
        return kind.endswith(".ended") and part not in self._sent

    def _grow(
        self, kind: str, part: str, data: JsonObject, content: JsonObject
    ) -> Iterator[JsonObject]:
        """A part that starts, grows by deltas, and ends with its whole text."""
        if kind.endswith(".started"):
            self._sent[part] = ""
        elif kind.endswith(".delta") and part in self._sent:
            count, delta = self._deltas.get(part, 0) + 1, str(data.get("delta", ""))
            if data.get("cursor") != count:
                # What came before it was not heard: the end of the part brings the rest.
                return
            self._deltas[part] = count
            self._sent[part] += delta
            if delta:
                yield {**content, "delta": delta}
        elif kind.endswith(".ended"):
            whole, sent = str(data.get("text", "")), self._sent.pop(part, "")
            self._deltas.pop(part, None)
            if whole.startswith(sent) and len(whole) > len(sent):
                yield {**content, "delta": whole[len(sent) :]}


def _result(data: JsonObject) -> str:
    error: JsonValue = data.get("error")
    if jsonc.is_object(error):
        return str(error.get("message", "it failed"))
    content: JsonValue = data.get("content")
    parts = content if jsonc.is_list(content) else []
    texts = [str(part.get("text", "")) for part in parts if jsonc.is_object(part)]
    return "\n".join(text for text in texts if text)


def _seq(event: JsonObject) -> int | None:
    durable: JsonValue = event.get("durable")
    seq: JsonValue = durable.get("seq") if jsonc.is_object(durable) else None
    return seq if isinstance(seq, int) else None
