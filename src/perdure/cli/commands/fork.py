"""`perdure fork`: a new Session that begins with a copy of another one."""

import argparse

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.parser("fork", "Copy a Session into a new one and print its id.")
    options.add_attach(parser)
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--id", help="the id of the new Session; a new one by default")
    cut = parser.add_mutually_exclusive_group()
    cut.add_argument("--message", metavar="ID", help="copy up to and with this message")
    cut.add_argument("--seq", type=int, help="copy up to and with this sequence")
    given = parser.parse_args(argv)
    forked = session_client.run(_fork(given, options.surroundings(given.data_dir)))
    terminal.say(terminal.one_line(forked) + "\n")
    return 0


async def _fork(given: argparse.Namespace, surroundings: Environment) -> str:
    async with session_client.open_client(given.attach, surroundings) as client:
        forked = await client.sessions.fork(
            given.session, id=given.id, message_id=given.message, seq=given.seq
        )
        return forked["id"]
