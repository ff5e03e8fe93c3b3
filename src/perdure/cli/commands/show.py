"""`perdure show`: shows a Session as it was shown while it ran, from its log."""

import asyncio

from perdure.cli import options, remote, session_choice, terminal
from perdure.cli.render.session_text import SessionText, describe_totals
from perdure.cli.render.tables import local_time
from perdure.cli.session_source import open_source
from perdure.cli.style import Span, Style
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url
from perdure.schema.codec import JsonObject


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "show",
        "Show a Session: prompts, answers, tool calls with their diffs, and what it used.",
        examples="perdure show\nperdure show ses_... | less",
    )
    options.add_attach(parser)
    options.add_session(parser, default=session_choice.LAST)
    options.add_format(parser, json="one event on each line")
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    with remote.errors_as_problems():
        asyncio.run(_show(given.attach, environment, given.session, form=given.format))
    return 0


async def _show(url: str | None, environment: Environment, name: str, *, form: str) -> None:
    async with open_source(url, environment) as source:
        is_local = url is None or is_loopback_url(url)
        session_id = await session_choice.find_session(source, name, is_local=is_local)
        session = await source.session(session_id)
        if form == "json":
            async for event in source.events(session_id):
                terminal.print_output(terminal.as_json(event) + "\n")
            return
        _print_heading(session)
        text = SessionText(is_log=True)
        async for event in source.events(session_id):
            text.show(event)
        text.finish()
        seconds = (session["time"]["updated"] - session["time"]["created"]) / 1000
        terminal.print_spans([Span(f"\n{describe_totals(text.totals, seconds)}\n", Style.DIM)])


def _print_heading(session: JsonObject) -> None:
    title, directory = session["title"], session["location"]["directory"]
    terminal.print_spans(
        [
            Span(f"{terminal.one_line(title)}\n", Style.BOLD),
            Span(
                f"{session['id']} · {terminal.one_line(directory)}"
                f" · {local_time(session['time']['created'])}\n",
                Style.DIM,
            ),
        ]
    )
