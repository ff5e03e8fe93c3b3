"""Where we answer otherwise than the recorded server did, and why.

A reason is found by a pattern of `recording: exchange: difference`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

FILES: Final = (
    "checks_order",
    "errors_prompt_pages",
    "errors_session",
    "list_pty",
    "location_catalog",
    "misc_semantics",
    "permission_question",
    "run_revert",
)


@dataclass(frozen=True)
class Order:
    """The durable events of a run here, and why they differ."""

    ours: tuple[str, ...]
    reason: str


_WAY: Final = "a step tells by which way its request went"
_DROPPED: Final = "an answer whose connection broke is asked for again (ADR 37)"
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
    r"(misc_semantics|permission_question|run_revert): .*: \.data\[assistant\]\.route is new": _WAY,
    # By recording.
    r"checks_order: (perm save|pty title) null: status 200 instead of 400": "null counts as absent",
    r"errors_prompt_pages: (compact|wait idle): status 204 instead of 503": "it is implemented",
    r"errors_prompt_pages: history .*\.data\.prompt\.(files|agents).*": (
        "the agent in force is not switched to again, so that sequences differ by one"
    ),
    r"errors_prompt_pages: messages cursor=\S+: status 400 instead of 200": (
        "cursors are sealed: one that the server did not give out is refused"
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
    r"errors_session: create extra field: status 400 instead of 200": (
        "a field without effect is refused by its name"
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
    r"permission_question: perm saved: \.data\[\]\.(scope|directory) is new": (
        "an approval tells how far it reaches and where it was given (ADR 42)"
    ),
    r"permission_question: pending \w+: \.data\[\]\.metadata is new": (
        "optional as published; what is asked for is shown"
    ),
    r"misc_semantics: stage while running: status 409 instead of 200": (
        "what still runs would change what is taken back"
    ),
    r"run_revert: \d context: \.data\[assistant\]\.content\[tool\]\S+\.structured\.files is new": (
        "what a write changed is told as what an edit changed"
    ),
    r"errors_prompt_pages: hist2: \.data\[session\.next\.compaction\.reported\] is new": (
        "a compaction that did nothing says so"
    ),
    r"run_revert: \d (message|context): \.data\[assistant\]\.snapshot(\.start)? is missing": (
        "optional as published; before anything was changed there is nothing to go back to"
    ),
}

ANSWERS: Final[Mapping[str, str]] = {
    r"auth_cors: auth \[\]: status 200 instead of 401": "a probe needs no password",
    r"auth_cors: (doc|unknown path|root) no auth: a body is new": "every failure is told in JSON",
    r"auth_cors: root no auth: status 200 instead of 401": "the web page, which asks for a log-in",
    r"auth_cors: pty connect bogus ticket no auth: status 403 instead of 404": (
        "who has no good ticket does not learn which terminals there are"
    ),
    r"auth_cors: (GET origin|preflight evil|CSRF).*: status 403 instead of 20[04]": (
        "a page that is not listed is refused, not only kept from reading the answer"
    ),
    r"auth_cors: Host rebinding: status 403 instead of 200": (
        "a name that is not ours may be pointed here by anybody"
    ),
    r"auth_cors: (urlencoded ct|multipart): content-type: application/json instead of text/plain": (
        "every failure is told in JSON"
    ),
    r"misc_http: (session whose directory does not exist|interrupt/prompt there): .*": (
        "to read, to stop and to prompt needs no directory"
    ),
    r"misc_http: (/openapi.json|HEAD /api/health): content-type: application/json instead of .*": (
        "no page stands for any path"
    ),
    r"misc_http: POST /api/health: status 405 instead of 200": "no page stands for any path",
    r"misc_http: session id with slash-encoded: status 400 instead of 404": (
        "ids begin with `ses_`, and no path is one"
    ),
}
"""Of answers that were recorded as text: a reason by `recording: name: difference`."""

SOCKETS: Final[Mapping[str, str]] = {
    r"evil_origin_no_ticket: .*'status': 403.* instead of .*'status': 101.*": (
        "a page that is not listed may not type"
    ),
}

STREAMS: Final[Mapping[str, str]] = {
    r"(live1|live_heartbeat|perm_question): live next\.step\.started: \.data\.route is new": _WAY,
    r"(?!live_misc)\w+: live next\.(text|reasoning|tool\.input)\.delta: \.data\.cursor is new": (
        "who joins in the middle knows by it which deltas the message already has"
    ),
    r"(live1|live_heartbeat|perm_question): live next\.step\.(started|ended): "
    r"\.data\.(snapshot|files) is missing": (
        "optional as published; before anything was changed there is nothing to go back to"
    ),
    r"live_misc: (plugin\.added|(catalog|reference|integration)\.updated) is missing after .*": (
        "what is built in is no plugin, and a directory that is used first has not changed"
    ),
    r"live_misc: catalog\.updated is new after integration\.updated": (
        "other models can be used once one is connected"
    ),
    r"live_misc: live (catalog|integration(\.connection)?)\.updated: \.location is missing": (
        "optional as published; a credential is the user's, in every directory"
    ),
    r"perm_question: next\.step\.ended (<ses[36]>) is new after next\.tool\.failed \1": (
        "a step whose call was refused is settled"
    ),
    r"perm_question: live permission\.v2\.asked: \.data\.metadata\.\w+ is (missing|new)": (
        "as published, whatever who asks wants to show"
    ),
}
"""Where a live stream tells something else: a reason by `recording: difference`."""

EVENTS: Final[Mapping[str, str]] = {
    r"(write|revert_files): (durable|live) next\.tool\.success: \.data\.structured\.files is new": (
        "what a write changed is told as what an edit changed"
    ),
    r"(?!unknown_)\w+: (durable|live) next\.step\.started: \.data\.route is new": _WAY,
    r"(?!empty|http|unknown_)\w+: live next\.(text|reasoning|tool\.input)\.delta: "
    r"\.data\.cursor is new": (
        "who joins in the middle knows by it which deltas the message already has"
    ),
    r"\w+: durable \S+: \.location is new": "kept in the log, so that replay is as live",
    r"\w+: \w+ next\.step\.(started|ended): \.data\.(snapshot|files) is missing": (
        "optional as published; before anything was changed there is nothing to go back to"
    ),
    r"todo: \w+ next\.todo\.updated is new": "the list of what is to be done is durable here",
    r"perm_\w+: live permission\.v2\.asked: \.data\.metadata\.\w+ is (missing|new)": (
        "as published, whatever who asks wants to show"
    ),
    r"revert: \w+ next\.revert\.staged: \.data\.revert\.(snapshot|diff|files) is missing": (
        "optional as published; the messages that are taken back changed no file"
    ),
    r"compaction: live next\.compaction\.delta is new": "as published; told as it comes",
    r"compaction: \w+ next\.compaction\.ended: \.data\.directives is new": (
        "what the user said is kept word for word beside the summary"
    ),
    r"compaction: \w+ next\.spent is new": "what a summary has cost is durable here",
    r"drop: \w+ next\.(message\.excluded|retried) is new": _DROPPED,
}
"""Where an event has another shape: a reason by `run: stream event: difference`."""

STATUS: Final = "status"
"""Live events tell in every run what a Session does."""

_TOOL: Final = ("tool.input.started", "tool.input.ended", "tool.called")
_TEXT: Final = ("step.started", "text.started", "text.ended", "step.ended")
_PROMPT: Final = ("prompt.admitted", "prompted")
_BEGIN: Final = (*_PROMPT, "step.started")
_SPENT: Final = ("compaction.started", "spent", "spent", "compaction.ended")
_REFUSED: Final = "a step whose call was refused is settled"
_UNUSABLE: Final = "a call whose input is no JSON is told to the model, and the run goes on"
_DECIDED: Final = "who prompts after a revert was staged has decided for it"
_NOBODY: Final = "an agent that is not there is not replaced by another"
_VISIBLE: Final = "why nothing happens is for all to see"
_SETTLED: Final = Order((*_BEGIN, *_TOOL, "tool.failed", "step.ended"), _REFUSED)
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
        _UNUSABLE,
    ),
    "drop": Order(
        (
            *_BEGIN,
            "text.started",
            "text.ended",
            "message.excluded",
            "step.failed",
            "retried",
            *_TEXT,
        ),
        _DROPPED,
    ),
    "perm_reject": _SETTLED,
    "question_reject": _SETTLED,
    "revert": Order(
        (
            *(*_PROMPT, *_TEXT, *_BEGIN, *_TOOL, "tool.success", "step.ended", *_TEXT),
            *("revert.staged", "revert.cleared", "revert.staged", "revert.committed"),
            *(*_PROMPT, *_TEXT, "revert.staged", "revert.committed", *_PROMPT, *_TEXT),
        ),
        _DECIDED,
    ),
    "compaction": Order(
        (*((*_PROMPT, *_TEXT) * 2), *_PROMPT, *_SPENT, *_TEXT, *_PROMPT, *_TEXT),
        "what a summary has cost is durable, and it leaves room for the next prompt",
    ),
    "unknown_agent": Order((*_BEGIN, "step.failed"), _NOBODY),
    "unknown_model": Order((*_BEGIN, "step.failed"), _VISIBLE),
    "unknown_variant": Order((*_BEGIN, "step.failed"), _VISIBLE),
}


_ROOM: Final = "a summary leaves room for the next prompt, which is not summed up again"
SETTLED: Final[Mapping[str, str]] = {
    r"write: (messages|context)\.data\[assistant\]\.content\[tool\]\S+\.files is new": (
        "what a write changed is told as what an edit changed"
    ),
    # In all of them.
    r"(?!unknown_)\w+: \w+\.data\[assistant\]\.route is new": _WAY,
    r"interrupt_text: meanwhile\.data\[assistant\]\.content\[text\]\.cursor is new": (
        "a part that streams tells which live deltas follow its text"
    ),
    r"\w+: (messages|meanwhile)\.cursor\.(previous|next) is missing": (
        "what is not there is left out, never null"
    ),
    r"(?!unknown_(model|variant)$)\w+: \w+\.data\[assistant\]\.snapshot(\.start)? is missing": (
        "optional as published; before anything was changed there is nothing to go back to"
    ),
    # By run.
    r"compaction: compaction is missing after user": _ROOM,
    r"compaction: context\.data\[user\] is new": _ROOM,
    r"compaction: \w+\.data\[compaction\]\.directives is new": (
        "what the user said is kept word for word beside the summary"
    ),
    r"drop: assistant, text, stop is new after assistant, text, error": _DROPPED,
    r"drop: \w+\.data\[assistant\]\.(time\.excluded|cost|tokens) is new": _DROPPED,
    r"drop: \w+\.data\[assistant\]\.error is missing": _DROPPED,
    r"junkjson: assistant, tool pending, error is missing after user": _UNUSABLE,
    r"junkjson: assistant, tool error, tool-calls is new after user": _UNUSABLE,
    r"junkjson: assistant, text, stop is new after assistant, tool error, tool-calls": _UNUSABLE,
    r"junkjson: \w+\.data\[assistant\]\.(error is missing|(cost|tokens|content\[text\]) is new)": (
        _UNUSABLE
    ),
    r"junkjson: \w+\.data\[assistant\]\.content\[tool\]\..*": _UNUSABLE,
    r"multi: assistant, tool \w+, tool \w+, tool-calls is (missing|new) after user": (
        "the call that fails is the first one here, so that it ends first, as recorded"
    ),
    r"(perm|question)_reject: assistant, tool error, open is missing after user": _REFUSED,
    r"(perm|question)_reject: assistant, tool error, tool-calls is new after user": _REFUSED,
    r"(perm|question)_reject: \w+\.data\[assistant\]\.(finish|cost|tokens) is new": _REFUSED,
    r"(perm|question)_reject: \w+\.data\[assistant\]\.time\.completed is new": _REFUSED,
    r"revert: (assistant, text, stop is missing after user|session\.data\.revert is missing)": (
        _DECIDED
    ),
    r"unknown_agent: assistant, (text, stop is missing|error is new) after user": _NOBODY,
    r"unknown_agent: \w+\.data\[assistant\]\.((cost|tokens) is missing|error is new)": _NOBODY,
    r"unknown_(model|variant): assistant, error is new after user": _VISIBLE,
    r"unknown_(model|variant): \w+\.data\[assistant\] is new": _VISIBLE,
}
"""Where a Session is another one when its run is over: a reason by `run: difference`."""

_GOES_ON: Final = "a run that was cut goes on after a restart (ADR 33)"
_SETTLES: Final = "a server that starts settles what the one before it left open (ADR 15)"
RESTART: Final[Mapping[str, str]] = {
    r"((tool|text) after .*|pending after next prompt): \.data\[assistant\]\.route is new": _WAY,
    r"((tool|text) after .*|pending after next prompt): durable next\.step\.started: "
    r"\.data\.route is new": _WAY,
    r"tool after .*: next\.tool\.failed is new after next\.tool\.called": _GOES_ON,
    **{
        rf"tool after .*: next\.{after} is new after next\.{before}": _GOES_ON
        for before, after in pairwise(("tool.failed", "step.ended", *_TEXT))
    },
    **{
        rf"text after .*: next\.{after} is new after next\.{before}": _GOES_ON
        for before, after in pairwise(("step.failed", "synthetic", *_TEXT))
    },
    r"(tool|text) after restart: \.data\[assistant\]\.(cost|tokens) is new": _GOES_ON,
    r"tool after restart: \.data\[assistant\]\.content\[text\] is new": _GOES_ON,
    r"text after .*: \.data\[synthetic\] is new": _GOES_ON,
    r"text after .*: durable next\.synthetic is new": _GOES_ON,
    r"(tool|text) after restart: \.data\[assistant\]\.(finish|time\.completed) is new": _SETTLES,
    r"tool after restart: .*\.content\[tool\]\.(state\.error|time\.completed) is new": _SETTLES,
    r"tool after next prompt: next\.tool\.failed is missing after next\.prompt\.admitted": _SETTLES,
    r"text after .*: next\.step\.failed is new after next\.text\.started": _SETTLES,
    r"text after .*: \.data\[assistant\]\.error is new": _SETTLES,
    r"(tool|text|pending) after .*: durable \S+: \.location is new": (
        "kept in the log, so that replay is as live"
    ),
    r"(tool|text|pending) after .*: \.cursor\.(previous|next) is missing": (
        "what is not there is left out, never null"
    ),
    r"((tool|text) after .*|pending after next prompt): .*\.(snapshot|files) is missing": (
        "optional as published; before anything was changed there is nothing to go back to"
    ),
}
"""Where a restart finds or does something else: a reason by `case: difference`."""


def check_reasons(name: str, found: Sequence[str], reasons: Mapping[str, str]) -> None:
    """Every difference has a reason, and every reason that is for this name is needed."""
    used = {line: [each for each in reasons if re.fullmatch(each, line)] for line in found}
    unexplained = [line for line, patterns in used.items() if not patterns]
    assert unexplained == [], "\n".join(["without a reason:", *unexplained])
    mine = {each for each in reasons if re.fullmatch(each.partition(":")[0], name)}
    idle = mine - {each for patterns in used.values() for each in patterns}
    assert idle == set(), "\n".join(["no longer needed:", *sorted(idle)])
