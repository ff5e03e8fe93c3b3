"""Requests of Sessions to a person, as forms of the protocol (elicitation) and in results."""

from collections.abc import Mapping
from typing import Final

from perdure.core.text import jsonc
from perdure.schema.approval.permission import Reply
from perdure.schema.codec import JsonObject, JsonValue

_REPLIES: Final[tuple[Reply, ...]] = ("once", "always", "reject")
_SHOWN_CHARS_MAX: Final = 2_000

ELICIT: Final = "elicitation/create"


def show_permission(request: Mapping[str, JsonValue]) -> JsonObject:
    return {
        "request": request["id"],
        "kind": "permission",
        "session": request["sessionID"],
        "action": request["action"],
        "resources": [_cut(str(one)) for one in _list(request.get("resources"))],
        "answer_with": "session_reply with `reply`: once, always or reject",
    }


def show_question(request: Mapping[str, JsonValue]) -> JsonObject:
    return {
        "request": request["id"],
        "kind": "question",
        "session": request["sessionID"],
        "questions": _list(request.get("questions")),
        "answer_with": "session_reply with `answers`: a list of labels for each question",
    }


def permission_form(request: Mapping[str, JsonValue]) -> JsonObject:
    """The parameters of an elicitation."""
    resources = ", ".join(str(one) for one in _list(request.get("resources")))
    reply: JsonObject = {
        "type": "string",
        "title": "Reply",
        "enum": list(_REPLIES),
        "description": "once: this time; always: also from now on; reject: not at all",
    }
    return {
        "mode": "form",
        "message": _cut(f"A session wants to use {request['action']}: {resources}"),
        "requestedSchema": {
            "type": "object",
            "properties": {"reply": reply},
            "required": ["reply"],
        },
    }


def question_form(request: Mapping[str, JsonValue]) -> JsonObject:
    questions = [one for one in _list(request.get("questions")) if jsonc.is_object(one)]
    fields: JsonObject = {
        f"answer_{number}": _field(question) for number, question in enumerate(questions, start=1)
    }
    message = "\n".join(str(question.get("question", "")) for question in questions)
    return {
        "mode": "form",
        "message": _cut(message) or "A session asks a question",
        "requestedSchema": {"type": "object", "properties": fields, "required": list(fields)},
    }


def read_reply(answer: Mapping[str, JsonValue]) -> Reply | None:
    """The word that a person chose; None if there is none."""
    content: JsonValue = answer.get("content")
    if answer.get("action") != "accept" or not jsonc.is_object(content):
        return None
    return next((word for word in _REPLIES if word == content.get("reply")), None)


def read_answers(
    answer: Mapping[str, JsonValue], request: Mapping[str, JsonValue]
) -> list[list[str]] | None:
    """What a person filled in, a list for each question; None if there is nothing."""
    content: JsonValue = answer.get("content")
    if answer.get("action") != "accept" or not jsonc.is_object(content):
        return None
    found: list[list[str]] = []
    for number, _ in enumerate(_list(request.get("questions")), start=1):
        given: JsonValue = content.get(f"answer_{number}")
        many = given if jsonc.is_list(given) else [] if given is None else [given]
        found.append([str(one) for one in many])
    return found


def _field(question: JsonObject) -> JsonObject:
    labels: list[JsonValue] = [
        option["label"]
        for option in _list(question.get("options"))
        if jsonc.is_object(option) and isinstance(option.get("label"), str)
    ]
    title, text = str(question.get("header") or "Answer"), _cut(str(question.get("question", "")))
    if question.get("multiple") is True and labels:
        items: JsonObject = {"type": "string", "enum": labels}
        return {"type": "array", "title": title, "description": text, "items": items}
    if question.get("custom") is False and labels:
        return {"type": "string", "title": title, "description": text, "enum": labels}
    known = ", ".join(str(label) for label in labels)
    about = f"{text} (such as: {known})" if known else text
    return {"type": "string", "title": title, "description": about}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if jsonc.is_list(value) else []


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS_MAX else f"{text[:_SHOWN_CHARS_MAX]}..."
