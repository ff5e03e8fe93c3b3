"""`perdure sessions`: the Sessions there are, the newest first."""

import asyncio
from datetime import UTC, datetime

from perdure.cli import options, remote, terminal
from perdure.cli.session_source import open_archive
from perdure.host.environment import Environment
from perdure.schema.codec import JsonObject


def main(argv: list[str]) -> int:
    parser = options.parser("sessions", "List Sessions, the newest first.")
    options.add_attach(parser)
    parser.add_argument("--limit", type=int, default=50, help="default: 50")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    given = parser.parse_args(argv)
    if given.limit < 1:
        parser.error("--limit must be at least 1")
    surroundings = options.surroundings(given.data_dir)
    with remote.explained():
        found = asyncio.run(_sessions(given.attach, surroundings, given.limit))
    for session in found:
        line = terminal.as_json(session) if given.format == "json" else _line(session)
        terminal.say(line + "\n")
    return 0


async def _sessions(
    url: str | None, surroundings: Environment, limit: int
) -> tuple[JsonObject, ...]:
    async with open_archive(url, surroundings) as archive:
        return await archive.sessions(limit)


def _line(session: JsonObject) -> str:
    updated = datetime.fromtimestamp(session["time"]["updated"] / 1000, UTC)
    title = terminal.one_line(session["title"])
    spent = f"  ${session['cost']:.4f}" if session["cost"] else ""
    return f"{terminal.one_line(session['id'])}  {updated:%Y-%m-%d %H:%M:%S}Z  {title}{spent}"
