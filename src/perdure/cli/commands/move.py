"""`perdure move`: a Session goes on in another directory of its project."""

import os

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url


def main(argv: list[str]) -> int:
    parser = options.parser("move", "Move a Session to another directory of its project.")
    options.add_attach(parser)
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("directory", metavar="DIRECTORY")
    parser.add_argument(
        "--changes",
        action="store_true",
        help="take the uncommitted changes along, when that is another git work tree",
    )
    given = parser.parse_args(argv)
    # A server elsewhere does not know our directories; what is meant there is said in full.
    here = given.attach is None or is_loopback_url(given.attach)
    directory = os.path.abspath(given.directory) if here else str(given.directory)
    surroundings = options.surroundings(given.data_dir)
    moved = session_client.run(
        _move(given.attach, surroundings, given.session, directory, changes=given.changes)
    )
    terminal.say(f"{terminal.one_line(given.session)} is in {terminal.one_line(moved)}\n")
    return 0


async def _move(
    url: str | None, surroundings: Environment, session_id: str, directory: str, *, changes: bool
) -> str:
    """Where the Session is then."""
    async with session_client.open_client(url, surroundings) as client:
        await client.sessions.move(session_id, directory=directory, move_changes=changes)
        session = await client.sessions.get(session_id)
        return session["location"]["directory"]
