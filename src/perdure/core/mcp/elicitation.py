"""Elicitation: a form or an address of an MCP server, as questions to a person and back.

Each field of a form is one question, with the values of an enumeration as its options. An answer is
converted to the type of its field. What is not a form is not shown: the server is told that it was
declined.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import UNSET

from perdure.core import limits
from perdure.core.text import jsonc
from perdure.schema.approval.question import Answers, Question, QuestionOption
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value

DECLINED: Final[JsonObject] = {"action": "decline"}
CANCELLED: Final[JsonObject] = {"action": "cancel"}

_YES: Final = "Yes"
_NO: Final = "No"
_DONE: Final = "Done"
_DECLINE: Final = "Decline"

_FieldType = Literal["string", "number", "integer", "boolean", "array"]


class FormField(Value, kw_only=True):
    name: str
    type: _FieldType
    question: Question
    values: Mapping[str, str]
    """The value of each label of an enumeration."""
    required: bool


class Elicitation(Value, kw_only=True):
    questions: tuple[Question, ...]
    fields: tuple[FormField, ...] = ()
    """Empty for an address, which has one question."""


class UnfitAnswerError(ValueError):
    """An answer does not fit its field. The message is for the person."""


def read_elicitation(params: JsonObject, *, server: str) -> Elicitation | None:
    """The questions to a person; None if it is nothing that can be asked."""
    message = _text(params.get("message"), limits.MCP_QUESTION_CHARS_MAX)
    if params.get("mode") == "url":
        return _address(params, message, server)
    schema: JsonValue = params.get("requestedSchema")
    properties: JsonValue = schema.get("properties") if jsonc.is_object(schema) else None
    if not jsonc.is_object(schema) or not jsonc.is_object(properties):
        return None
    if not properties or len(properties) > limits.MCP_FORM_FIELDS_MAX:
        return None
    given: JsonValue = schema.get("required")
    required = [name for name in given if isinstance(name, str)] if jsonc.is_list(given) else []
    fields: list[FormField] = []
    for name, field in properties.items():
        made = _field(name, field, message=f"{server} asks: {message}", required=name in required)
        if made is None:
            return None
        fields.append(made)
    return Elicitation(questions=tuple(field.question for field in fields), fields=tuple(fields))


def answer(elicitation: Elicitation, answers: Answers) -> JsonObject:
    """The result for the server. Raises UnfitAnswerError."""
    if not elicitation.fields:
        accepted = bool(answers) and answers[0][:1] == (_DONE,)
        return {"action": "accept"} if accepted else DECLINED
    content: JsonObject = {}
    for field, given in zip(elicitation.fields, answers, strict=False):
        if given:
            content[field.name] = _value(field, given)
        elif field.required:
            raise UnfitAnswerError(f"{field.question.header} must be answered.")
    return {"action": "accept", "content": content}


def _address(params: JsonObject, message: str, server: str) -> Elicitation | None:
    url = _text(params.get("url"), limits.WEB_URL_CHARS_MAX)
    if not url.startswith(("https://", "http://")) or not url.isprintable():
        return None
    question = Question(
        question=f"{server} asks you to open this address: {url}\n{message}",
        header=_text(server, limits.MCP_HEADER_CHARS_MAX),
        options=(
            QuestionOption(label=_DONE, description="I have done what the page asks for."),
            QuestionOption(label=_DECLINE, description="I will not open it."),
        ),
        custom=False,
    )
    return Elicitation(questions=(question,))


def _field(name: str, schema: JsonValue, *, message: str, required: bool) -> FormField | None:
    if not jsonc.is_object(schema):
        return None
    kind = schema.get("type", "string")
    if kind not in {"string", "number", "integer", "boolean", "array"}:
        return None
    listed: JsonValue = schema.get("items") if kind == "array" else schema
    choices: dict[str, str] = {}
    if kind in {"string", "array"} and jsonc.is_object(listed):
        choices = _choices(listed)
    elif kind == "boolean":
        choices = {_YES: _YES, _NO: _NO}
    if kind == "array" and not choices:
        return None
    title = _text(schema.get("title"), limits.MCP_HEADER_CHARS_MAX)
    about = _text(schema.get("description"), limits.MCP_QUESTION_CHARS_MAX)
    words = [message, title or _text(name, limits.MCP_HEADER_CHARS_MAX), about]
    shown = tuple(choices)[: limits.QUESTION_OPTIONS_MAX]
    question = Question(
        question="\n".join(filter(None, words)),
        header=title or _text(name, limits.MCP_HEADER_CHARS_MAX),
        options=tuple(QuestionOption(label=label, description="") for label in shown),
        multiple=True if kind == "array" else UNSET,
        custom=False if choices and len(shown) == len(choices) else UNSET,
    )
    return FormField(name=name, type=kind, question=question, values=choices, required=required)


def _choices(schema: JsonObject) -> dict[str, str]:
    """Labels and values of an enumeration, in all forms that the protocol has had."""
    values: JsonValue = schema.get("enum")
    if jsonc.is_list(values):
        given: JsonValue = schema.get("enumNames")
        names: Sequence[JsonValue] = given if jsonc.is_list(given) else values
        pairs = zip(names, values, strict=False)
    else:
        either: JsonValue = schema.get("oneOf", schema.get("anyOf"))
        options = [one for one in either if jsonc.is_object(one)] if jsonc.is_list(either) else []
        pairs = ((one.get("title", one.get("const")), one.get("const")) for one in options)
    return {
        _text(label, limits.MCP_HEADER_CHARS_MAX): value
        for label, value in pairs
        if isinstance(label, str) and label.strip() and isinstance(value, str)
    }


def _value(field: FormField, given: tuple[str, ...]) -> JsonValue:
    text = given[0]
    match field.type:
        case "array":
            return [field.values.get(label, label) for label in given]
        case "boolean":
            return text == _YES
        case "integer" | "number":
            return _number(field, text)
        case "string":
            return field.values.get(text, text)


def _number(field: FormField, text: str) -> int | float:
    try:
        if field.type == "integer":
            return int(text)
        number = float(text)
    except ValueError as error:
        raise UnfitAnswerError(f"{field.question.header} must be a number.") from error
    if not math.isfinite(number):
        raise UnfitAnswerError(f"{field.question.header} must be a finite number.")
    return number


def _text(value: JsonValue, chars_max: int) -> str:
    return value.encode(errors="replace").decode()[:chars_max] if isinstance(value, str) else ""
