"""`perdure rename`: a Session gets another title."""

from perdure.cli import options, session_client, terminal
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.parser("rename", "Give a Session another title.")
    options.add_attach(parser)
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("title", metavar="TITLE")
    given = parser.parse_args(argv)
    surroundings = options.surroundings(given.data_dir)
    title = session_client.run(_rename(given.attach, surroundings, given.session, given.title))
    terminal.say(f"{terminal.one_line(given.session)} is called {terminal.one_line(title)}\n")
    return 0


async def _rename(url: str | None, surroundings: Environment, session_id: str, title: str) -> str:
    async with session_client.open_client(url, surroundings) as client:
        return (await client.sessions.rename(session_id, title))["title"]
