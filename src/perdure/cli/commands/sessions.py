"""`perdure sessions`: lists Sessions, newest first."""

import asyncio
import os

from perdure.cli import options, remote, session_choice, terminal
from perdure.cli.render.tables import local_time, print_table
from perdure.cli.session_source import open_source
from perdure.host.environment import Environment
from perdure.schema.codec import JsonObject


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "sessions",
        "List Sessions, newest first: id, last change, cost, directory and title.",
        examples="perdure sessions --here\nperdure sessions --limit 10 --format json",
    )
    options.add_attach(parser)
    parser.add_argument(
        "--limit", type=int, default=50, metavar="N", help="list at most N (default: 50)"
    )
    parser.add_argument("--here", action="store_true", help="list those of this directory alone")
    options.add_format(parser, json="one Session on each line")
    given = parser.parse_args(argv)
    if given.limit < 1:
        parser.error("--limit must be at least 1")
    environment = options.read_environment(given.data_dir)
    directory = session_choice.find_directory() if given.here else None
    with remote.errors_as_problems():
        found = asyncio.run(_list_sessions(given.attach, environment, given.limit, directory))
    if given.format == "json":
        for session in found:
            terminal.print_output(terminal.as_json(session) + "\n")
        return 0
    print_table(("SESSION", "CHANGED", "COST", "DIRECTORY", "TITLE"), [_row(it) for it in found])
    if not found:
        where = f" of {os.getcwd()}" if given.here else ""
        terminal.print_note(f"there are no Sessions{where} yet; `perdure run` starts one\n")
    return 0


async def _list_sessions(
    url: str | None, environment: Environment, limit: int, directory: str | None
) -> tuple[JsonObject, ...]:
    async with open_source(url, environment) as source:
        return await source.sessions(limit, directory=directory)


def _row(session: JsonObject) -> tuple[str, ...]:
    spent = f"${session['cost']:.4f}" if session["cost"] else ""
    directory = _shorten(session["location"]["directory"])
    return session["id"], local_time(session["time"]["updated"]), spent, directory, session["title"]


def _shorten(directory: str) -> str:
    home = os.path.expanduser("~")
    within = directory == home or directory.startswith(f"{home}{os.sep}")
    return f"~{directory[len(home) :]}" if within else directory
