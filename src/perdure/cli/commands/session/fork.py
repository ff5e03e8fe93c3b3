"""`perdure fork`: copies a Session, up to a message or a sequence number, into a new one."""

import argparse

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "fork",
        "Copy a Session into a new one and print the new id.",
        examples="perdure fork ses_... --message msg_...",
    )
    options.add_attach(parser)
    options.add_session(parser)
    parser.add_argument("--id", help="use this id for the new Session (default: a generated one)")
    cut = parser.add_mutually_exclusive_group()
    cut.add_argument("--message", metavar="ID", help="copy up to this message, which is included")
    cut.add_argument(
        "--seq", type=int, metavar="N", help="copy up to this sequence number, which is included"
    )
    given = parser.parse_args(argv)
    forked = session_client.run(_fork(given, options.read_environment(given.data_dir)))
    terminal.print_output(terminal.one_line(forked) + "\n")
    return 0


async def _fork(given: argparse.Namespace, environment: Environment) -> str:
    opened = session_client.open_session(given.attach, environment, given.session)
    async with opened as (client, session_id):
        forked = await client.sessions.fork(
            session_id, id=given.id, message_id=given.message, seq=given.seq
        )
        return forked["id"]
