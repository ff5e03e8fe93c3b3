"""`perdure archive`: a Session is listed as archived, or no longer."""

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.parser("archive", "List a Session as archived; nothing of it is lost.")
    options.add_attach(parser)
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--undo", action="store_true", help="list it like the others again")
    given = parser.parse_args(argv)
    surroundings = options.surroundings(given.data_dir)
    session_client.run(_archive(given.attach, surroundings, given.session, undo=given.undo))
    state = "no longer archived" if given.undo else "archived"
    terminal.say(f"{terminal.one_line(given.session)} is {state}\n")
    return 0


async def _archive(
    url: str | None, surroundings: Environment, session_id: str, *, undo: bool
) -> None:
    async with session_client.open_client(url, surroundings) as client:
        if undo:
            await client.sessions.unarchive(session_id)
        else:
            await client.sessions.archive(session_id)
