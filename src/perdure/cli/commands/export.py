"""`perdure export`: one Session as JSON, with its messages and its durable events.

Written as it is read: a long Session does not have to fit into memory.
"""

import asyncio
from collections.abc import AsyncIterator

from perdure.cli import options, remote, terminal
from perdure.cli.session_source import open_archive
from perdure.host.environment import Environment
from perdure.schema.codec import JsonObject


def main(argv: list[str]) -> int:
    parser = options.parser("export", "Print a Session, its messages and its events as JSON.")
    options.add_attach(parser)
    parser.add_argument("session", metavar="ID")
    given = parser.parse_args(argv)
    with remote.explained():
        asyncio.run(_export(given.attach, options.surroundings(given.data_dir), given.session))
    return 0


async def _export(url: str | None, surroundings: Environment, session_id: str) -> None:
    async with open_archive(url, surroundings) as archive:
        session = await archive.session(session_id)
        terminal.say(f'{{"session":{terminal.as_json(session)}')
        await _write_list("messages", archive.messages(session_id))
        await _write_list("events", archive.events(session_id))
        terminal.say("}\n")


async def _write_list(name: str, items: AsyncIterator[JsonObject]) -> None:
    separator = f',\n"{name}":[\n'
    async for item in items:
        terminal.say(separator + terminal.as_json(item))
        separator = ",\n"
    terminal.say("]" if separator == ",\n" else f"{separator}]")
