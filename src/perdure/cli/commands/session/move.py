"""`perdure move`: moves a Session to another directory of its project."""

import os

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "move",
        "Move a Session to another directory of its project.",
        examples="perdure move ses_... ../other-worktree --changes",
    )
    options.add_attach(parser)
    options.add_session(parser)
    parser.add_argument("directory", metavar="DIRECTORY", help="directory to continue in")
    parser.add_argument(
        "--changes",
        action="store_true",
        help="also move uncommitted changes, if DIRECTORY is in another git work tree",
    )
    given = parser.parse_args(argv)
    # A server on another machine has other directories: the path is sent as given.
    is_local = given.attach is None or is_loopback_url(given.attach)
    directory = os.path.abspath(given.directory) if is_local else str(given.directory)
    environment = options.read_environment(given.data_dir)
    moved = session_client.run(
        _move(given.attach, environment, given.session, directory, changes=given.changes)
    )
    terminal.print_output(f"{terminal.one_line(given.session)} is in {terminal.one_line(moved)}\n")
    return 0


async def _move(
    url: str | None, environment: Environment, name: str, directory: str, *, changes: bool
) -> str:
    """Move the Session and return its new directory."""
    async with session_client.open_session(url, environment, name) as (client, session_id):
        await client.sessions.move(session_id, directory=directory, move_changes=changes)
        session = await client.sessions.get(session_id)
        return session["location"]["directory"]
