"""`perdure context`: shows the System Context of a Session and the size of its next request.

It can also exclude a message or a tool result from what the model is sent, and restore it; the
stored messages stay as they are. Sizes are those of text and JSON before a wire protocol encodes
them; tokens are estimated.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, cast

import msgspec
from msgspec import UNSET, UnsetType

from perdure.cli import options, session_client, terminal
from perdure.cli.problem import Problem
from perdure.core.request import token_budget
from perdure.core.session import omission
from perdure.host.environment import Environment
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.session.message import SessionMessage, ToolPart
from perdure.schema.session.request_preview import (
    PendingContext,
    ProviderContext,
    ProviderRequest,
    RequestText,
    SourceDetail,
    WindowInfo,
)
from perdure.schema.value import Value

_LARGEST_SHOWN: Final = 5


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "context",
        "Show the System Context of a Session, and the size of the next request to its model."
        " With --exclude or --restore, first change what the model is sent from the next turn on.",
        examples="perdure context ses_...\nperdure context ses_... --exclude msg_... --call call_1",
    )
    options.add_attach(parser)
    options.add_session(parser)
    options.add_format(parser)
    parser.add_argument("--full", action="store_true", help="also print the whole next request")
    change = parser.add_mutually_exclusive_group()
    change.add_argument(
        "--exclude", metavar="MESSAGE", help="no longer send this message to the model"
    )
    change.add_argument("--restore", metavar="MESSAGE", help="send an excluded message again")
    parser.add_argument(
        "--call",
        metavar="ID",
        help="with --exclude or --restore, only the result of this tool call",
    )
    given = parser.parse_args(argv)
    if given.call is not None and not (given.exclude or given.restore):
        parser.error("--call needs --exclude or --restore")
    wish = _Exclusion(
        message_id=given.exclude or given.restore or "",
        call_id=given.call,
        excluded=given.restore is None,
    )
    found = session_client.run(
        _fetch(given.attach, options.read_environment(given.data_dir), given.session, wish)
    )
    if given.format == "json":
        terminal.print_output(terminal.as_json(found) + "\n")
        return 0
    context = _decode(found)
    for line in (*summary(context), *(full(context.request) if given.full else ())):
        terminal.print_output(line + "\n")
    return 0


class _Exclusion(Value, kw_only=True):
    """The first message to exclude or restore; without a message id, none."""

    message_id: str
    call_id: str | None
    excluded: bool


async def _fetch(
    url: str | None, environment: Environment, name: str, wish: _Exclusion
) -> JsonObject:
    async with session_client.open_session(url, environment, name) as (client, session_id):
        if wish.message_id:
            await client.sessions.exclude_message(
                session_id, wish.message_id, excluded=wish.excluded, call_id=wish.call_id
            )
        return cast("JsonObject", await client.sessions.provider_context(session_id))


def _decode(found: JsonObject) -> ProviderContext:
    try:
        return codec.convert(ProviderContext, found)
    except msgspec.ValidationError as error:
        raise Problem(
            f"this version does not understand the answer of the server: {error};"
            " use the same version of perdure on both sides"
        ) from error


def summary(found: ProviderContext) -> Iterator[str]:
    """Return lines about the epoch, the sources, pending changes and the next request."""
    yield f"epoch    {_epoch(found)}"
    yield f"prompts  {found.pending_prompts} waiting"
    if isinstance(found.pending, PendingContext):
        yield f"pending  {_pending(found.pending)}"
    yield "sources"
    width = max((len(source.key) for source in found.source_details), default=0)
    for source in found.source_details:
        yield f"  {source.key:{width}}  {_source(source)}"
    if isinstance(found.request, ProviderRequest):
        yield from _sizes(found.request)
        yield from _largest(found.messages)
        if isinstance(found.window, WindowInfo):
            yield f"window   {_window(found.window)}"
    else:
        yield f"request  none: {terminal.one_line(found.refusal or '')}"


def full(request: object) -> Iterator[str]:
    """Return the request as text; parts that are not text as JSON."""
    if not isinstance(request, ProviderRequest):
        return
    for text in request.system:
        yield f"\n=== system\n{terminal.clean(text)}"
    for message in request.messages:
        yield f"\n=== {message.role}"
        for part in message.content:
            plain = isinstance(part, RequestText)
            yield terminal.clean(part.text) if plain else json.dumps(codec.to_json_value(part))
    for tool in request.tools:
        yield f"\n=== tool {terminal.one_line(tool.name)}\n{terminal.clean(tool.description)}"
        yield json.dumps(tool.input_schema)
    yield f"\n=== options\n{json.dumps(request.options)}"


def _epoch(found: ProviderContext) -> str:
    if not found.epoch:
        return "none yet: the first turn starts one"
    began = datetime.fromtimestamp(found.epoch.began / 1000, UTC)
    return f"baseline at sequence {found.epoch.baseline_seq}, began {began:%Y-%m-%d %H:%M:%S}Z"


def _pending(pending: PendingContext) -> str:
    match pending.type:
        case "nothing":
            return "no changes"
        case "blocked":
            return f"the baseline waits for sources: {', '.join(pending.keys or ())}"
        case "baseline" | "message":
            return f"{pending.type}: {terminal.one_line(pending.text or '')}"


def _source(source: SourceDetail) -> str:
    marks = [
        mark
        for mark, holds in (
            ("changed", source.changed),
            ("not available", not source.available),
            ("removable", source.removable),
        )
        if holds
    ]
    shown = "-" if source.value is UNSET else json.dumps(source.value, ensure_ascii=False)
    value = terminal.one_line(shown)
    return f"{value}  ({', '.join(marks)})" if marks else value


def _sizes(request: ProviderRequest) -> Iterator[str]:
    messages = [codec.encode(message).decode() for message in request.messages]
    tools = [codec.encode(tool).decode() for tool in request.tools]
    parts = [
        *((f"system {number}", text) for number, text in enumerate(request.system, 1)),
        (f"messages ({len(messages)})", "".join(messages)),
        (f"tools ({len(tools)})", "".join(tools)),
    ]
    model = f"{request.model.provider_id}/{request.model.id}"
    yield f"request  to {terminal.one_line(model)} as agent {terminal.one_line(request.agent)}"
    yield f"  {'part':20}{'characters':>12}{'tokens':>12}"
    for name, text in (*parts, ("all", "".join(text for _, text in parts))):
        yield f"  {name:20}{len(text):>12,}{token_budget.estimate(text):>12,}"


def _largest(messages: Sequence[SessionMessage]) -> Iterator[str]:
    """Return lines about the largest messages, as they are stored, and what is not sent of them."""
    sizes = {message.id: _tokens(message) for message in messages}
    chosen = sorted(messages, key=lambda message: -sizes[message.id])[:_LARGEST_SHOWN]
    if chosen:
        yield "largest messages"
    for message in chosen:
        mark = "  (excluded)" if omission.is_excluded(message) else ""
        yield f"  {message.id}  {_kind(message):10}{sizes[message.id]:>12,} tokens{mark}"
        calls = sorted(omission.calls_of(message), key=lambda part: -_tokens(part))
        for part in calls[:_LARGEST_SHOWN]:
            marks = _marks(("excluded", part.time.excluded), ("pruned", part.time.pruned))
            name = f"{terminal.one_line(part.id)} {terminal.one_line(part.name)}"
            yield f"    call {name}{_tokens(part):>12,} tokens{marks}"


def _kind(message: SessionMessage) -> str:
    return str(message.__struct_config__.tag)


def _marks(*times: tuple[str, int | UnsetType]) -> str:
    marks = [name for name, time in times if time is not UNSET]
    return f"  ({', '.join(marks)})" if marks else ""


def _tokens(stored: SessionMessage | ToolPart) -> int:
    return token_budget.estimate(codec.encode(stored).decode())


def _window(window: WindowInfo) -> str:
    if not (window.context and window.request_max):
        return f"{window.tokens:,} tokens; the context size of this model is not known"
    percent = 100 * window.tokens // window.context
    full = f"{window.tokens:,} of {window.context:,} tokens ({percent} %)"
    if window.compacts:
        return f"{full}: the next turn starts with a compaction"
    left = window.request_max - window.tokens
    if left < 0:
        return f"{full}: over the limit of {window.request_max:,}, and no compaction is due"
    return f"{full}; compaction starts at {window.request_max:,}, in {left:,} tokens"
