"""`perdure diff`: shows the changes that a Session made to files, in the order it made them."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

from perdure.cli import options, remote, session_choice, terminal
from perdure.cli.render import tool_calls
from perdure.cli.session_source import SessionSource, open_source
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "diff",
        "Show the changes that the file tools of a Session made, in the order they were made.\n"
        "What commands changed is not part of it.",
        examples="perdure diff\nperdure diff ses_... --stat",
    )
    options.add_attach(parser)
    options.add_session(parser, default=session_choice.LAST)
    parser.add_argument("--stat", action="store_true", help="print one line for each change alone")
    options.add_format(parser, json="one JSON value: a list of changes")
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    with remote.errors_as_problems():
        changes = asyncio.run(_load(given.attach, environment, given.session))
    if given.format == "json":
        shown = [{"tool": it.tool, "path": it.path, "patch": it.patch} for it in changes]
        terminal.print_output(terminal.as_json(shown) + "\n")
        return 0
    if not changes:
        terminal.print_note("this Session has changed no file with its file tools\n")
    for change in changes:
        if given.stat:
            terminal.print_output(f"{change.tool} {terminal.one_line(change.path)}\n")
        else:
            spans = tool_calls.render_diff(change.patch, lines_max=len(change.patch), indent="")
            terminal.print_spans(spans)
    return 0


class _Change(Value):
    tool: str
    path: str
    patch: str


async def _load(url: str | None, environment: Environment, name: str) -> list[_Change]:
    async with open_source(url, environment) as source:
        is_local = url is None or is_loopback_url(url)
        session_id = await session_choice.find_session(source, name, is_local=is_local)
        return [change async for change in _read_changes(source, session_id)]


async def _read_changes(source: SessionSource, session_id: str) -> AsyncIterator[_Change]:
    calls: dict[tuple[str, str], JsonObject] = {}
    async for event in source.events(session_id):
        data = cast("JsonObject", event["data"])
        if event["type"] == "session.next.tool.called":
            calls[data["assistantMessageID"], data["callID"]] = data
        elif event["type"] == "session.next.tool.success":
            call = calls.pop((data["assistantMessageID"], data["callID"]), None)
            if call is None:
                continue
            for path, patch in tool_calls.list_patches(
                call["tool"], call["input"], data.get("structured")
            ):
                yield _Change(call["tool"], path, patch)
