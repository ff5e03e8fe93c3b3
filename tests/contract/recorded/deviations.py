"""Where we answer otherwise than the recorded server did, and why.

A reason is found by a pattern of `recording: exchange: difference`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

FILES: Final = (
    "checks_order",
    "errors_prompt_pages",
    "errors_session",
    "list_pty",
    "location_catalog",
    "misc_semantics",
    "permission_question",
)


@dataclass(frozen=True)
class Order:
    """The durable events of a run here, and why they differ."""

    ours: tuple[str, ...]
    reason: str


EXCHANGES: Final[Mapping[str, str]] = {
    # In several recordings.
    r"(?!location_catalog)\w+: .*: \.cursor\.(previous|next) is missing": (
        "what is not there is left out, never null"
    ),
    r"(errors_\w+|l\w+|permission_question): .*: status 4\d\d instead of 500": (
        "a mistake of the caller is no defect of the server"
    ),
    r"errors_\w+: .*: \.data\[session\.next\.\S+\]\.location is new": (
        "optional as published; told here"
    ),
    r"(checks_order|location_catalog): .*: \.data\[\]\.steps is new": (
        "optional as published; an agent of this test has a limit"
    ),
    # By recording.
    r"checks_order: (perm save|pty title) null: status 200 instead of 400": "null counts as absent",
    r"errors_prompt_pages: (compact|wait idle): status 204 instead of 503": "it is implemented",
    r"errors_prompt_pages: history .*\.data\.prompt\.(files|agents).*": (
        "the agent in force is not switched to again, so that sequences differ by one"
    ),
    r"errors_prompt_pages: messages cursor=\S+: status 400 instead of 200": (
        "cursors are sealed: one that nobody gave out is refused"
    ),
    r"errors_session: create no body(, ct json)?: status 200 instead of 400": (
        "no body is an empty one where nothing is required"
    ),
    r"errors_session: create no content-type: status 415 instead of 200": (
        "any web page can send a body without a type"
    ),
    r"errors_session: create id ses only: status 400 instead of 200": "ids begin with `ses_`",
    r"errors_session: get malformed2: status 400 instead of 404": "ids begin with `ses_`",
    r"errors_session: create location missing dir: status 400 instead of 200": (
        "a Session works in a directory that is there"
    ),
    r"errors_session: unknown route: status 404 instead of 200": "no page stands for any path",
    r"errors_session: wrong method: status 405 instead of 200": "no page stands for any path",
    r"errors_session: delete session: status 204 instead of 200": "Sessions can be deleted",
    r"list_pty: list (next|prev|cursor).*: status 400 instead of 200": (
        "cursors are sealed: those of another server are refused"
    ),
    r"list_pty: pty create none: status 200 instead of 400": (
        "no body is an empty one where nothing is required"
    ),
    r"list_pty: pty create badcwd: status 400 instead of 200": "a terminal begins somewhere",
    r"list_pty: pty token no header: status 200 instead of 403": (
        "only pages of other sites must show that they are no form; the published client may not"
    ),
    r"list_pty: pty after exit: \.data\.exitCode is missing": "its program still sleeps here",
    r"location_catalog: loc relative: status 400 instead of 200": "a Location is absolute",
    r"location_catalog: loc json string: \.(kind is missing|field is new)": (
        "a bad Location names the field, wherever it was given"
    ),
    r"location_catalog: provider get: \.data\..* is missing": "no secret is told to anybody",
    r"location_catalog: integration unknown: status 404 instead of 200": "there is none",
    r"location_catalog: cred update unknown: status 404 instead of 204": "there is none",
    r"misc_semantics: (after wake )?msgs: \.data\[assistant\]\.snapshot is missing": (
        "nothing was changed, so that there is nothing to go back to"
    ),
    r"misc_semantics: after wake msgs: \.data\[user\]\.attached is new": (
        "what was attached is kept with the message"
    ),
    r"misc_semantics: cursor of other session: status 400 instead of 200": (
        "a cursor is for the list that it came from"
    ),
    r"permission_question: msgs pending \w+: \.data\[assistant\]\.snapshot is missing": (
        "nothing was changed, so that there is nothing to go back to"
    ),
    r"permission_question: pending \w+: \.data\[\]\.metadata is new": (
        "optional as published; what is asked for is shown"
    ),
    r"misc_semantics: stage while running: status 409 instead of 200": (
        "what still runs would change what is taken back"
    ),
}

EVENTS: Final[Mapping[str, str]] = {
    r"\w+: durable \S+: \.location is new": "kept in the log, so that replay is as live",
    r"\w+: \w+ next\.step\.(started|ended): \.data\.(snapshot|files) is missing": (
        "optional as published; before anything was changed there is nothing to go back to"
    ),
    r"todo: \w+ next\.todo\.updated is new": "the list of what is to be done is durable here",
    r"todo: \w+ next\.tool\.called: \.data\.input\.todos\[\]\.id is missing": (
        "as the model of this test calls it"
    ),
    r"perm_\w+: live permission\.v2\.asked: \.data\.metadata is new": (
        "optional as published; what is asked for is shown"
    ),
    r"revert: \w+ next\.revert\.staged: \.data\.revert\.(snapshot|diff|files) is missing": (
        "optional as published; the messages that are taken back changed no file"
    ),
    r"compaction: live next\.compaction\.delta is new": "as published; told as it comes",
    r"compaction: \w+ next\.compaction\.ended: \.data\.directives is new": (
        "what the user said is kept word for word beside the summary"
    ),
    r"compaction: \w+ next\.spent is new": "what a summary has cost is durable here",
}
"""Where an event has another shape: a reason by `run: stream event: difference`."""

STATUS: Final = "status"
"""What a Session does is told live in every run here, so that nobody has to guess."""

_TOOL: Final = ("tool.input.started", "tool.input.ended", "tool.called")
_TEXT: Final = ("step.started", "text.started", "text.ended", "step.ended")
_PROMPT: Final = ("prompt.admitted", "prompted")
_BEGIN: Final = (*_PROMPT, "step.started")
_SPENT: Final = ("compaction.started", "spent", "spent", "compaction.ended")
_SETTLED: Final = Order(
    (*_BEGIN, *_TOOL, "tool.failed", "step.ended"), "a step whose call was refused is settled"
)
RUNS: Final[Mapping[str, Order]] = {
    "read": Order(
        (*_BEGIN, "text.started", "text.ended", *_TOOL, "tool.success", "step.ended", *_TEXT),
        "a text ends when something else begins, not when the answer does",
    ),
    "todo": Order(
        (*_BEGIN, *_TOOL, "todo.updated", "tool.success", "step.ended", *_TEXT),
        "the list of what is to be done is durable here",
    ),
    "junkjson": Order(
        (*_BEGIN, *_TOOL[:2], "tool.failed", "step.ended", *_TEXT),
        "a call whose input is no JSON is told to the model, and the run goes on",
    ),
    "perm_reject": _SETTLED,
    "question_reject": _SETTLED,
    "revert": Order(
        (
            *(*_PROMPT, *_TEXT, *_BEGIN, *_TOOL, "tool.success", "step.ended", *_TEXT),
            *("revert.staged", "revert.cleared", "revert.staged", "revert.committed"),
            *(*_PROMPT, *_TEXT, "revert.staged", "revert.committed", *_PROMPT, *_TEXT),
        ),
        "who prompts after a revert was staged has decided for it",
    ),
    "compaction": Order(
        (*((*_PROMPT, *_TEXT) * 2), *_PROMPT, *_SPENT, *_TEXT, *_PROMPT, *_TEXT),
        "what a summary has cost is durable, and it leaves room for the next prompt",
    ),
    "unknown_agent": Order(
        (*_BEGIN, "step.failed"), "an agent that is not there is not replaced by another"
    ),
    "unknown_model": Order((*_BEGIN, "step.failed"), "why nothing happens is for all to see"),
    "unknown_variant": Order((*_BEGIN, "step.failed"), "why nothing happens is for all to see"),
}
