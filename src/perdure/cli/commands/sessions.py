"""`perdure sessions`: lists Sessions, newest first."""

import asyncio
from datetime import UTC, datetime

from perdure.cli import options, remote, terminal
from perdure.cli.session_source import open_source
from perdure.host.environment import Environment
from perdure.schema.codec import JsonObject


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "sessions",
        "List Sessions, newest first: id, last change (UTC), title and cost.",
        examples="perdure sessions --limit 10",
    )
    options.add_attach(parser)
    parser.add_argument(
        "--limit", type=int, default=50, metavar="N", help="list at most N (default: 50)"
    )
    options.add_format(parser)
    given = parser.parse_args(argv)
    if given.limit < 1:
        parser.error("--limit must be at least 1")
    environment = options.read_environment(given.data_dir)
    with remote.errors_as_problems():
        found = asyncio.run(_list_sessions(given.attach, environment, given.limit))
    for session in found:
        line = terminal.as_json(session) if given.format == "json" else _line(session)
        terminal.print_output(line + "\n")
    return 0


async def _list_sessions(
    url: str | None, environment: Environment, limit: int
) -> tuple[JsonObject, ...]:
    async with open_source(url, environment) as source:
        return await source.sessions(limit)


def _line(session: JsonObject) -> str:
    updated = datetime.fromtimestamp(session["time"]["updated"] / 1000, UTC)
    title = terminal.one_line(session["title"])
    spent = f"  ${session['cost']:.4f}" if session["cost"] else ""
    return f"{terminal.one_line(session['id'])}  {updated:%Y-%m-%d %H:%M:%S}Z  {title}{spent}"
