"""Permission requests and questions as an editor shows them, and what its answers mean."""

import os
from collections.abc import Sequence
from enum import Enum
from typing import Final, Literal

from msgspec import UNSET

from perdure.acp.schema.content import ToolContent, text_content
from perdure.acp.schema.updates import AskedCall
from perdure.acp.show import diffs, tool_calls
from perdure.acp.wire.wire_value import WireValue, list_of, object_of
from perdure.core.approval.request_notes import list_notes
from perdure.core.text.visible import make_visible
from perdure.schema.approval.permission import PermissionRequest, Reply, Scope
from perdure.schema.approval.question import Question, QuestionRequest
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value

OptionKind = Literal["allow_once", "allow_always", "reject_once"]
_PATTERNS_SHOWN_MAX: Final = 5
_REFUSED: Final = "The user refused this in the editor. Go on without it, or ask what to do."


class Option(WireValue):
    option_id: str
    name: str
    kind: OptionKind


class Asked(Value, kw_only=True):
    """What a person decides about, and what can be chosen."""

    call: AskedCall
    description: str
    options: tuple[Option, ...]
    command: str | None = None
    """The whole command, if it is about one."""
    directory: str = ""
    """Where the command would run."""


class PermissionAnswer(Value):
    reply: Reply
    scope: Scope | None = None
    message: str | None = None


_ANSWERS: Final[dict[str, PermissionAnswer]] = {
    "once": PermissionAnswer("once"),
    "session": PermissionAnswer("always", scope="session"),
    "always": PermissionAnswer("always"),
    "reject": PermissionAnswer("reject"),
    "without": PermissionAnswer("reject", message=_REFUSED),
}


def show_permission(request: PermissionRequest, directory: str) -> Asked:
    """The whole of a request: every line of it can be read before it is answered."""
    metadata: JsonObject = request.metadata or {}
    changes = () if request.changes is UNSET else request.changes
    shown: list[ToolContent] = [
        diff
        for change in changes
        for diff in diffs.show_patch(directory, change.path, change.status, change.patch)
    ]
    description = "\n".join(_describe(request, metadata))
    cut = [change.path for change in changes if not change.patch.strip()]
    description += "".join(f"\n{path}: there is no diff" for path in cut)
    source = request.source
    call_id = (
        request.id if source is UNSET else tool_calls.call_id(source.message_id, source.call_id)
    )
    is_command = request.action == "bash"
    return Asked(
        call=AskedCall(
            tool_call_id=call_id,
            title=f"Allow {request.action}: {_first_line(request.resources)}",
            kind=tool_calls.KINDS.get(request.action, "other"),
            status="pending",
            content=(text_content(description), *shown),
            locations=diffs.places(directory, [(change.path, None) for change in changes]),
            raw_input={"resources": list(request.resources), **metadata},
        ),
        description=description,
        options=tuple(_options(request)),
        command="\n".join(request.resources) if is_command else None,
        directory=os.path.join(directory, str(metadata.get("workdir", ""))),
    )


def read_permission(result: JsonValue) -> PermissionAnswer:
    """What the client's answer means; what cannot be understood allows nothing."""
    outcome = object_of(object_of(result).get("outcome"))
    if outcome.get("outcome") != "selected":
        return _ANSWERS["reject"]
    return _ANSWERS.get(str(outcome.get("optionId")), _ANSWERS["reject"])


def _describe(request: PermissionRequest, metadata: JsonObject) -> list[str]:
    lines: list[str] = []
    if metadata.get("protected") is True:
        reason = make_visible(str(metadata.get("reason", ""))).replace("\n", " ")
        lines.append(f"This is asked in any case. {reason}\n")
    shown = make_visible("\n".join(request.resources))
    fence = "`" * max(3, _longest_run(shown) + 1)
    lines += [fence, shown, fence]
    if "workdir" in metadata:
        lines.append(f"in {make_visible(str(metadata['workdir']))}")
    patches = [] if request.changes is UNSET else [change.patch for change in request.changes]
    lines += [f"note: {note}" for note in list_notes(request.resources, metadata, patches)]
    if patterns := request.save or ():
        lines.append("“Always” means, from now on without a question: " + _list(request, patterns))
    return lines


def _options(request: PermissionRequest) -> list[Option]:
    options = [Option("once", "Allow once", "allow_once")]
    if patterns := request.save or ():
        means = _list(request, patterns)
        options += [
            Option("session", f"Allow in this session: {means}", "allow_always"),
            Option("always", f"Always allow in this project: {means}", "allow_always"),
        ]
    return [
        *options,
        Option("reject", "Reject and stop", "reject_once"),
        Option("without", "Reject and go on without it", "reject_once"),
    ]


def _list(request: PermissionRequest, patterns: Sequence[str]) -> str:
    named = [f"every {request.action}" if each == "*" else make_visible(each) for each in patterns]
    more = len(named) - _PATTERNS_SHOWN_MAX
    shown = ", ".join(named[:_PATTERNS_SHOWN_MAX]).replace("\n", " ")
    return f"{shown} and {more} more" if more > 0 else shown


def _first_line(resources: Sequence[str]) -> str:
    return tool_calls.title("", {"command": make_visible(", ".join(resources))}).strip()


def _longest_run(text: str) -> int:
    """The most backticks in a row."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


# ---- questions ----------------------------------------------------------------------------------


def make_form(request: QuestionRequest) -> JsonObject:
    """The schema of a form with a field for each question."""
    names = [_field(number) for number in range(len(request.questions))]
    fields = map(_property, request.questions)
    return {"type": "object", "properties": dict(zip(names, fields, strict=True))}


def read_form(request: QuestionRequest, result: JsonValue) -> tuple[tuple[str, ...], ...] | None:
    """The answers in the order of the questions; None if the form was declined."""
    answer = object_of(result)
    if answer.get("action") != "accept":
        return None
    given = object_of(answer.get("content"))
    return tuple(
        _answers(question, given.get(_field(number)))
        for number, question in enumerate(request.questions)
    )


def _answers(question: Question, value: JsonValue) -> tuple[str, ...]:
    texts = [str(each) for each in list_of(value) if each not in (None, "")]
    labels = {option.label for option in question.options}
    kept = [text for text in texts if question.takes_own_words or text in labels]
    return tuple(kept if question.takes_many else kept[:1])


def _field(number: int) -> str:
    return f"answer{number + 1}"


def _property(question: Question) -> JsonObject:
    options = [
        {"const": option.label, "title": option.label, "description": option.description}
        for option in question.options
    ]
    shown = {"title": question.header or question.question, "description": question.question}
    if question.takes_many and options:
        return {**shown, "type": "array", "items": {"anyOf": options}}
    if question.takes_own_words or not options:
        listed = "; ".join(f"{each.label}: {each.description}" for each in question.options)
        text = f"{question.question} ({listed})" if listed else question.question
        return {**shown, "description": text, "type": "string"}
    return {**shown, "type": "string", "oneOf": options}


class Choice(Enum):
    """What can be chosen beside the answers."""

    DECLINED = "declined"
    DONE = "done"


def choose_one(
    question: Question, call_id: str, chosen: Sequence[str] = ()
) -> tuple[AskedCall, list[Option]]:
    """A question as a permission request, for editors without forms: its answers are options."""
    options = [
        Option(f"option{number}", _label(option.label, option.description), "allow_once")
        for number, option in enumerate(question.options)
        if option.label not in chosen
    ]
    if question.takes_many and chosen:
        options.insert(
            0, Option(Choice.DONE.value, f"That is all: {', '.join(chosen)}", "allow_once")
        )
    decline = "None of these: stop, and I write an answer"
    options.append(Option(Choice.DECLINED.value, decline, "reject_once"))
    text = make_visible(question.question)
    call = AskedCall(
        tool_call_id=call_id,
        title=tool_calls.title("", {"command": question.header or question.question}).strip(),
        kind="other",
        status="pending",
        content=(text_content(text),),
    )
    return call, options


def read_choice(question: Question, result: JsonValue) -> str | Choice:
    """The label that was chosen; declined, if the answer cannot be understood."""
    chosen = object_of(object_of(result).get("outcome")).get("optionId")
    if chosen == Choice.DONE.value:
        return Choice.DONE
    labels = {f"option{number}": each.label for number, each in enumerate(question.options)}
    return labels.get(str(chosen), Choice.DECLINED)


def _label(label: str, description: str) -> str:
    return make_visible(f"{label}: {description}" if description else label)
