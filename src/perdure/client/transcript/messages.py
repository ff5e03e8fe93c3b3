"""The messages of a Session: a fold of its events, as the server's own projection makes them.

Messages that are not loaded, and those that a revert removed, are left alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from perdure.client.transcript import parts
from perdure.schema.codec import JsonObject

PREFIX: Final = "session.next."


class Messages:
    """Messages in the order of their creation, by id."""

    def __init__(self, messages: Iterable[JsonObject] = ()) -> None:
        self._order: list[JsonObject] = list(messages)
        self._by_id: dict[str, JsonObject] = {message["id"]: message for message in self._order}

    def __iter__(self) -> Iterator[JsonObject]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def get(self, message_id: str) -> JsonObject | None:
        """The message, if it is loaded."""
        return self._by_id.get(message_id)

    def add_earlier(self, messages: Sequence[JsonObject]) -> list[JsonObject]:
        """Put messages before all others; returns those that are new."""
        new = [message for message in messages if message["id"] not in self._by_id]
        self._order[:0] = new
        self._by_id.update((message["id"], message) for message in new)
        return new

    def apply(self, event: JsonObject) -> str | None:
        """Apply a durable event or a fragment; returns the id of the message that it changed."""
        kind, data = str(event["type"]).removeprefix(PREFIX), event["data"]
        if kind in parts.FRAGMENT_KINDS:
            message = self._by_id.get(data["assistantMessageID"])
            changed = message is not None and parts.apply_fragment(message, kind, data)
            return data["assistantMessageID"] if changed else None
        if create := _CREATED.get(kind):
            return self._create(kind, data, create(data))
        match kind:
            case "shell.ended":
                return self._end_shell(data)
            case "message.excluded" | "message.restored":
                return self._exclude(kind, data)
            case "revert.committed":
                self._revert(data["messageID"])
                return None
            case _:
                return self._apply_to_assistant(kind, data)

    def _create(self, kind: str, data: JsonObject, message: JsonObject) -> str:
        if kind == "step.started":
            self._close_last_step(data)
        if message["id"] not in self._by_id:
            self._order.append(message)
            self._by_id[message["id"]] = message
        return message["id"]

    def _close_last_step(self, data: JsonObject) -> None:
        """Close a step that is still open: the process that ran it is gone."""
        for message in reversed(self._order):
            if message["type"] == "assistant":
                message["time"].setdefault("completed", data["timestamp"])
                return

    def _apply_to_assistant(self, kind: str, data: JsonObject) -> str | None:
        message = self._by_id.get(data.get("assistantMessageID", ""))
        if message is None or message["type"] != "assistant":
            return None
        match kind:
            case "step.ended":
                _end_step(message, data)
            case "step.failed":
                message["time"] = {**message["time"], "completed": data["timestamp"]}
                message |= {"finish": "error", "error": data["error"]}
            case _:
                if not parts.apply_event(message, kind, data):
                    return None
        return message["id"]

    def _end_shell(self, data: JsonObject) -> str | None:
        for message in reversed(self._order):
            if message["type"] == "shell" and message["callID"] == data["callID"]:
                message["output"] = data["output"]
                message["time"] = {**message["time"], "completed": data["timestamp"]}
                return message["id"]
        return None

    def _exclude(self, kind: str, data: JsonObject) -> str | None:
        message = self._by_id.get(data["messageID"])
        if message is None:
            return None
        at = data["timestamp"] if kind == "message.excluded" else None
        if "callID" not in data:
            message["time"] = _marked(message["time"], at)
        elif message["type"] == "assistant":
            for part in message["content"]:
                if part["type"] == "tool" and part["id"] == data["callID"]:
                    part["time"] = _marked(part["time"], at)
        return message["id"]

    def _revert(self, message_id: str) -> None:
        """Remove all messages after the one that is kept."""
        if message_id not in self._by_id:
            return
        place = next(at for at, found in enumerate(self._order) if found["id"] == message_id)
        for message in self._order[place + 1 :]:
            del self._by_id[message["id"]]
        del self._order[place + 1 :]


def _end_step(message: JsonObject, data: JsonObject) -> None:
    message["time"] = {**message["time"], "completed": data["timestamp"]}
    message |= {"finish": data["finish"], "cost": float(data["cost"]), "tokens": data["tokens"]}
    if "snapshot" in data or "files" in data:
        found = {
            "start": message.get("snapshot", {}).get("start"),
            "end": data.get("snapshot"),
            "files": data.get("files"),
        }
        message["snapshot"] = {name: value for name, value in found.items() if value is not None}


def _marked(time: JsonObject, at: int | None) -> JsonObject:
    kept = {name: value for name, value in time.items() if name != "excluded"}
    return kept if at is None else {**kept, "excluded": at}


def _created(data: JsonObject, *fields: str, type: str, **renamed: str) -> JsonObject:
    """A message with these fields of an event, and those that the event calls otherwise."""
    message: JsonObject = {
        "type": type,
        "id": data["messageID"],
        "time": {"created": data["timestamp"]},
    }
    message |= {field: data[field] for field in fields if field in data}
    return message | {name: data[field] for name, field in renamed.items()}


def _prompt(data: JsonObject) -> JsonObject:
    prompt = data["prompt"]
    message = _created(data, type="user") | {"text": prompt["text"]}
    message |= {field: prompt[field] for field in ("files", "agents") if field in prompt}
    return message | ({"attached": data["attached"]} if "attached" in data else {})


def _step(data: JsonObject) -> JsonObject:
    message: JsonObject = {
        "type": "assistant",
        "id": data["assistantMessageID"],
        "time": {"created": data["timestamp"]},
        "agent": data["agent"],
        "model": data["model"],
        "content": [],
    }
    if data.get("snapshot"):
        message["snapshot"] = {"start": data["snapshot"]}
    return message | ({"route": data["route"]} if "route" in data else {})


_CREATED: Final[dict[str, Callable[[JsonObject], JsonObject]]] = {
    "prompted": _prompt,
    "step.started": _step,
    "context.updated": lambda data: _created(data, "text", type="system"),
    "synthetic": lambda data: _created(data, "sessionID", "text", type="synthetic"),
    "agent.switched": lambda data: _created(data, "agent", type="agent-switched"),
    "model.switched": lambda data: _created(data, "model", type="model-switched"),
    "shell.started": lambda data: (
        _created(data, "callID", "command", type="shell") | {"output": ""}
    ),
    "compaction.ended": lambda data: _created(
        data, "reason", "recent", "directives", "todos", type="compaction", summary="text"
    ),
}
