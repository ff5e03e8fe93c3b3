"""`perdure rename`: gives a Session another title."""

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "rename", "Give a Session another title.", examples='perdure rename ses_... "Fix the login"'
    )
    options.add_attach(parser)
    options.add_session(parser)
    parser.add_argument("title", metavar="TITLE", help="new title")
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    title = session_client.run(_rename(given.attach, environment, given.session, given.title))
    terminal.print_output(
        f"{terminal.one_line(given.session)} is now called {terminal.one_line(title)}\n"
    )
    return 0


async def _rename(url: str | None, environment: Environment, name: str, title: str) -> str:
    async with session_client.open_session(url, environment, name) as (client, session_id):
        return (await client.sessions.rename(session_id, title))["title"]
