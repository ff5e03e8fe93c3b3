"""`perdure archive`: marks a Session as archived, or restores it."""

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "archive",
        "Mark a Session as archived, or restore it. Nothing of it is deleted.",
        examples="perdure archive ses_...\nperdure archive --undo ses_...",
    )
    options.add_attach(parser)
    options.add_session(parser)
    parser.add_argument("--undo", action="store_true", help="restore the Session from the archive")
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    session_client.run(_archive(given.attach, environment, given.session, undo=given.undo))
    state = "no longer archived" if given.undo else "archived"
    terminal.print_output(f"{terminal.one_line(given.session)} is {state}\n")
    return 0


async def _archive(url: str | None, environment: Environment, name: str, *, undo: bool) -> None:
    async with session_client.open_session(url, environment, name) as (client, session_id):
        if undo:
            await client.sessions.unarchive(session_id)
        else:
            await client.sessions.archive(session_id)
