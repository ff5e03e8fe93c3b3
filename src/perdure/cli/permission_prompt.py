"""Answers permission requests: asks at the terminal, refuses, or leaves them to another client.

Every answer goes through the client, whether the Session runs in this process or on a server. The
model wrote the text of the request, so all of it is shown, with its line breaks, page by page if it
is long, and characters that a terminal would not show are spelled out.
"""

import re
import shutil
from collections.abc import Iterable, Sequence
from typing import Final

from perdure.cli import terminal
from perdure.cli.style import Span, Style
from perdure.client import DeclaredError, WireClient
from perdure.core.approval.request_notes import list_notes
from perdure.core.text.visible import make_visible
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.approval.permission import Reply, Scope
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value

_FRAME: Final = "  | "
_COLUMNS_MIN: Final = 20
_ROWS_MIN: Final = 10
_MORE: Final = "-- Enter shows the next page, [n]o refuses: "
_REFUSAL: Final = lazy_pattern(r"no?\b[\s,:;.-]*(.*)", re.IGNORECASE | re.DOTALL)
_UNATTENDED: Final = (
    "This needs a person's approval, and nobody is there to give it. A permission rule that allows"
    " it would let it pass."
)


class TypedAnswer(Value):
    """The reply that a typed line stands for."""

    reply: Reply
    message: str | None = None
    scope: Scope | None = None


async def answer_at_terminal(event: JsonObject, client: WireClient) -> None:
    """Show the whole request, ask the user and send the answer. Anything else than yes is a no."""
    request = event["data"]
    size = shutil.get_terminal_size()
    lines = render_request(request, columns=size.columns)
    rows = max(size.lines, _ROWS_MIN) - 2
    has_diff = bool(_list_diffs(request))
    while len(lines) > rows:
        _print_lines(lines[:rows], has_diff=has_diff)
        lines = lines[rows:]
        typed = await terminal.ask(_MORE)
        if typed:
            await _reply(client, request, read_answer(typed, request, whole=False))
            return
    _print_lines(lines, has_diff=has_diff)
    typed = await terminal.ask(render_choices(request))
    await _reply(client, request, read_answer(typed, request))


def _print_lines(lines: Sequence[str], *, has_diff: bool) -> None:
    """Print lines of a request; those of a diff in its colours."""
    terminal.print_spans(
        [Span(f"{line}\n", _style_of(line) if has_diff else Style.PLAIN) for line in lines],
        as_note=True,
    )


def _style_of(line: str) -> Style:
    text = line.removeprefix(_FRAME)
    if text == line or text.startswith(("+++ ", "--- ")):
        return Style.PLAIN
    return {"+": Style.GREEN, "-": Style.RED}.get(text[:1], Style.PLAIN)


def read_answer(typed: str, request: JsonObject, *, whole: bool = True) -> TypedAnswer:
    """The answer that a typed line stands for. Nothing is allowed before the whole is shown."""
    word = typed.strip().lower()
    if whole and word in {"y", "yes", "once"}:
        return TypedAnswer(reply="once")
    if whole and request.get("save") and word in {"a", "always"}:
        return TypedAnswer(reply="always")
    if whole and request.get("save") and word in {"s", "session"}:
        return TypedAnswer(reply="always", scope="session")
    refusal = _REFUSAL.fullmatch(typed.strip())
    reason = refusal[1].strip() if refusal is not None else ""
    return TypedAnswer(reply="reject", message=reason or None)


def render_request(request: JsonObject, *, columns: int) -> list[str]:
    """The lines that show a request: everything that it is about, and what is unusual about it."""
    metadata: JsonObject = request.get("metadata", {})
    lines: list[str] = []
    if metadata.get("protected") is True:
        reason = make_visible(str(metadata.get("reason", ""))).replace("\n", " ")
        lines.append(f"This is asked in any case. {reason}")
    lines += _frame(_list_diffs(request), columns)
    lines.append(f"Allow {make_visible(str(request['action']))}?")
    lines += _frame(request["resources"], columns)
    if "workdir" in metadata:
        lines.append(f"  in {make_visible(str(metadata['workdir']))}")
    lines += [
        f"  note: {it}"
        for it in list_notes(list(map(str, request["resources"])), metadata, _list_diffs(request))
    ]
    if patterns := request.get("save"):
        lines.append("  always means, from now on without a question:")
        every = f"* (every {request['action']})"
        lines += _frame([every if it == "*" else it for it in patterns], columns)
    return lines


def _list_diffs(request: JsonObject) -> list[str]:
    """The diffs of the files that would be changed. A server of an older version has only one."""
    changes = [str(change["patch"]) for change in request.get("changes", ())]
    metadata: JsonObject = request.get("metadata", {})
    if not changes and metadata.get("protected") is True and "diff" in metadata:
        changes = [str(metadata["diff"])]
    return [patch.removesuffix("\n") for patch in changes]


def render_choices(request: JsonObject) -> str:
    """The line that lists what can be typed."""
    if not request.get("save"):
        return "[y]es, no with a reason (n REASON), [N]o: "
    return "[y]es, [a]lways, always in this [s]ession, no with a reason (n REASON), [N]o: "


async def refuse(event: JsonObject, client: WireClient) -> None:
    """Refuse because there is no terminal to ask at; otherwise the work would wait for ever."""
    request = event["data"]
    terminal.print_note(
        f"refused {_describe(request)}: there is no terminal to ask at; allow it with a permission"
        " rule, or use --permission-timeout to let another client answer\n"
    )
    await _reply(client, request, TypedAnswer(reply="reject", message=_UNATTENDED))


async def stop(event: JsonObject, client: WireClient) -> None:
    """Refuse, and so stop the run, because there is no terminal to ask at."""
    request = event["data"]
    terminal.print_note(f"stopped at {_describe(request)}: there is no terminal to ask at\n")
    await _reply(client, request, TypedAnswer(reply="reject"))


async def wait_for_other_client(event: JsonObject, client: WireClient) -> None:
    """Wait for another client to answer. The runtime refuses at the `--permission-timeout`."""
    terminal.print_note(f"waiting for another client to allow {_describe(event['data'])}\n")


async def _reply(client: WireClient, request: JsonObject, answer: TypedAnswer) -> None:
    permissions = client.sessions.permissions
    try:
        await permissions.reply(
            request["sessionID"],
            request["id"],
            answer.reply,
            message=answer.message,
            scope=answer.scope,
        )
    except DeclaredError as error:
        if error.tag != "PermissionNotFoundError":
            raise
        terminal.print_note("The request was already answered by another client, or it expired.\n")


def _describe(request: JsonObject) -> str:
    return terminal.one_line(f"{request['action']} {', '.join(request['resources'])}")


def _frame(texts: Iterable[str], columns: int) -> list[str]:
    """Every line of the texts behind a bar, wrapped, so that no line can pass for one of ours."""
    width = max(columns, _COLUMNS_MIN) - len(_FRAME)
    lines: list[str] = []
    for text in texts:
        for line in make_visible(str(text)).split("\n"):
            pieces = [line[start : start + width] for start in range(0, len(line), width)]
            lines += [_FRAME + piece for piece in pieces or [""]]
    return lines
