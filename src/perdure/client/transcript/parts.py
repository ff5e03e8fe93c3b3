"""The parts of an assistant message, changed by the events and fragments that name them.

A part that is open has a `cursor`: the number of the last fragment that its text contains. A
fragment that is already part of the text is ignored, so that a client may join at any moment.
Provider ids may repeat inside one message: the last part with an id is the one that is changed.
"""

from collections.abc import Callable
from typing import Final, Literal

from perdure.schema.codec import JsonObject

_SETTLED: Final = frozenset({"completed", "error"})

Kind = Literal["text", "reasoning", "tool"]


def apply_event(message: JsonObject, kind: str, data: JsonObject) -> bool:
    """Apply a durable event to the parts of an assistant message; False if it changes none."""
    change = _CHANGES.get(kind)
    if change is None:
        return False
    change(message, data)
    return True


def apply_fragment(message: JsonObject, kind: str, data: JsonObject) -> bool:
    """Add a live fragment to the part that it belongs to; False if the part has it or has ended."""
    of, key = _FRAGMENTS[kind]
    part = find_part(message, of, data[key])
    if part is None or not part.get("cursor", -1) < data["cursor"] or "cursor" not in part:
        return False
    part["cursor"] = data["cursor"]
    if of == "tool":
        part["state"]["input"] += data["delta"]
    else:
        part["text"] += data["delta"]
    return True


def find_part(message: JsonObject, kind: Kind, id: str) -> JsonObject | None:
    """The last part of that kind and id."""
    for part in reversed(message["content"]):
        if part["id"] == id and part["type"] == kind:
            return part
    return None


def _start_text(message: JsonObject, data: JsonObject) -> None:
    message["content"].append({"type": "text", "id": data["textID"], "text": "", "cursor": 0})


def _end_text(message: JsonObject, data: JsonObject) -> None:
    if part := find_part(message, "text", data["textID"]):
        part["text"] = data["text"]
        part.pop("cursor", None)


def _start_reasoning(message: JsonObject, data: JsonObject) -> None:
    part = {"type": "reasoning", "id": data["reasoningID"], "text": ""}
    if "providerMetadata" in data:
        part["providerMetadata"] = data["providerMetadata"]
    part |= {"time": {"created": data["timestamp"]}, "cursor": 0}
    message["content"].append(part)


def _end_reasoning(message: JsonObject, data: JsonObject) -> None:
    part = find_part(message, "reasoning", data["reasoningID"])
    if part is None:
        return
    began = part.get("time", {}).get("created", data["timestamp"])
    part["text"] = data["text"]
    part["time"] = {"created": began, "completed": data["timestamp"]}
    part.pop("cursor", None)
    if "providerMetadata" in data:
        part["providerMetadata"] = data["providerMetadata"]


def _start_input(message: JsonObject, data: JsonObject) -> None:
    message["content"].append(
        {
            "type": "tool",
            "id": data["callID"],
            "name": data["name"],
            "state": {"status": "pending", "input": ""},
            "time": {"created": data["timestamp"]},
            "cursor": 0,
        }
    )


def _end_input(message: JsonObject, data: JsonObject) -> None:
    part = _find_call(message, data, "pending")
    if part is not None:
        part["state"] = {"status": "pending", "input": data["text"]}
        part.pop("cursor", None)


def _call(message: JsonObject, data: JsonObject) -> None:
    part = _find_call(message, data, "pending")
    if part is None:
        return
    part["state"] = {"status": "running", "input": data["input"], "structured": {}, "content": []}
    part["provider"] = dict(data["provider"])
    part["time"] = {**part["time"], "ran": data["timestamp"]}
    part.pop("cursor", None)


def _progress(message: JsonObject, data: JsonObject) -> None:
    part = _find_call(message, data, "running")
    if part is not None:
        told = {"structured": data["structured"], "content": data["content"]}
        part["state"] = {**part["state"], **told}


def _succeed(message: JsonObject, data: JsonObject) -> None:
    part = _find_call(message, data, "running")
    if part is None:
        return
    state = {
        "status": "completed",
        "input": part["state"]["input"],
        "content": data["content"],
        "outputPaths": data.get("outputPaths", []),
        "structured": data["structured"],
    }
    _settle(part, state, data)


def _fail(message: JsonObject, data: JsonObject) -> None:
    part = _find_call(message, data, "pending", "running")
    if part is None:
        return
    state: JsonObject = part["state"]
    before: JsonObject = state if state["status"] == "running" else {}
    failed: JsonObject = {
        "status": "error",
        # A raw input that never became JSON is dropped: the field is an object from here on.
        "input": before.get("input", {}),
        "content": before.get("content", []),
        "structured": before.get("structured", {}),
        "error": data["error"],
    }
    _settle(part, failed, data)


def _settle(part: JsonObject, state: JsonObject, data: JsonObject) -> None:
    if "result" in data:
        state["result"] = data["result"]
    before: JsonObject = part.get("provider", {})
    now: JsonObject = data["provider"]
    provider: JsonObject = {"executed": now["executed"] or before.get("executed", False)}
    if "metadata" in before:
        provider["metadata"] = before["metadata"]
    if "metadata" in now:
        provider["resultMetadata"] = now["metadata"]
    part["state"], part["provider"] = state, provider
    part["time"] = {**part["time"], "completed": data["timestamp"]}
    part.pop("cursor", None)


def _prune(message: JsonObject, data: JsonObject) -> None:
    part = find_part(message, "tool", data["callID"])
    if part is None or part["state"]["status"] not in _SETTLED:
        return
    state, path = part["state"], data.get("path")
    if state["status"] == "completed" and path and path not in state["outputPaths"]:
        part["state"] = {**state, "outputPaths": [*state["outputPaths"], path]}
    part["time"] = {**part["time"], "pruned": data["timestamp"]}


def _find_call(message: JsonObject, data: JsonObject, *statuses: str) -> JsonObject | None:
    part = find_part(message, "tool", data["callID"])
    return part if part is not None and part["state"]["status"] in statuses else None


_CHANGES: Final[dict[str, Callable[[JsonObject, JsonObject], None]]] = {
    "text.started": _start_text,
    "text.ended": _end_text,
    "reasoning.started": _start_reasoning,
    "reasoning.ended": _end_reasoning,
    "tool.input.started": _start_input,
    "tool.input.ended": _end_input,
    "tool.called": _call,
    "tool.progress": _progress,
    "tool.success": _succeed,
    "tool.failed": _fail,
    "tool.pruned": _prune,
}
_FRAGMENTS: Final[dict[str, tuple[Kind, str]]] = {
    "text.delta": ("text", "textID"),
    "reasoning.delta": ("reasoning", "reasoningID"),
    "tool.input.delta": ("tool", "callID"),
}
FRAGMENT_KINDS: Final = frozenset(_FRAGMENTS)
