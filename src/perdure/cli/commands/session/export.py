"""`perdure export`: prints a Session with its messages and durable events as JSON.

Items are printed as they are read, so a long Session does not have to fit into memory.
"""

import asyncio
from collections.abc import AsyncIterator

from perdure.cli import options, remote, session_choice, terminal
from perdure.cli.session_source import open_source
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url
from perdure.schema.codec import JsonObject


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "export",
        "Print a Session with its messages and durable events as JSON.",
        examples="perdure export ses_... > session.json",
    )
    options.add_attach(parser)
    options.add_session(parser)
    given = parser.parse_args(argv)
    with remote.errors_as_problems():
        asyncio.run(_export(given.attach, options.read_environment(given.data_dir), given.session))
    return 0


async def _export(url: str | None, environment: Environment, name: str) -> None:
    async with open_source(url, environment) as source:
        is_local = url is None or is_loopback_url(url)
        session_id = await session_choice.find_session(source, name, is_local=is_local)
        session = await source.session(session_id)
        terminal.print_output(f'{{"session":{terminal.as_json(session)}')
        await _write_list("messages", source.messages(session_id))
        await _write_list("events", source.events(session_id))
        terminal.print_output("}\n")


async def _write_list(name: str, items: AsyncIterator[JsonObject]) -> None:
    separator = f',\n"{name}":[\n'
    async for item in items:
        terminal.print_output(separator + terminal.as_json(item))
        separator = ",\n"
    terminal.print_output("]" if separator == ",\n" else f"{separator}]")
