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
    """The events of a run here, and why they differ."""

    ours: tuple[str, ...]
    reason: str


EXCHANGES: Final[Mapping[str, str]] = {
    # Everywhere.
    r".*: \.cursor\.(previous|next) is missing": "what is not there is left out, never null",
    r".*: status 4\d\d instead of 500": "a mistake of the caller is no defect of the server",
    r".*: \.data\[session\.next\.\S+\]\.location is new": "optional as published; told here",
    r".*: \.data\[\]\.steps is new": "optional as published; an agent of this test has a limit",
    r".*: (msg|per|que|psv|cred) of a conversation that was not recorded": (
        "the exchange needs what a run beside the recording had made; see the acceptance tests"
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
    r"misc_semantics: retry after promotion: \.data\.promotedSeq is missing": (
        "the first admission was not recorded, so that this one is it"
    ),
    r"misc_semantics: after wake msgs: \.data\[assistant\]\.snapshot is missing": (
        "nothing was changed, so that there is nothing to go back to"
    ),
    r"misc_semantics: after wake msgs: \.data\[user\]\.attached is new": (
        "what was attached is kept with the message"
    ),
    r"misc_semantics: cursor of other session: status 400 instead of 200": (
        "a cursor is for the list that it came from"
    ),
    r"misc_semantics: get staged: \.data\.revert is missing": (
        "the message that was staged belongs to a conversation that was not recorded"
    ),
}

_TOOL: Final = ("tool.input.started", "tool.input.ended", "tool.called")
_TEXT: Final = ("step.started", "text.started", "text.ended", "step.ended")
_BEGIN: Final = ("prompt.admitted", "prompted", "step.started")
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
    "unknown_agent": Order(
        (*_BEGIN, "step.failed"), "an agent that is not there is not replaced by another"
    ),
    "unknown_model": Order((*_BEGIN, "step.failed"), "why nothing happens is for all to see"),
    "unknown_variant": Order((*_BEGIN, "step.failed"), "why nothing happens is for all to see"),
}
