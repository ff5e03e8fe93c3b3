"""`perdure delete`: deletes Sessions with everything stored for them, after a question."""

from perdure.cli import options, session_client, terminal
from perdure.cli.problem import Problem
from perdure.client.generated.types import SessionInfo
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "delete",
        "Delete Sessions, their subagents' Sessions and everything stored for them.\n"
        "This cannot be undone; `perdure archive` keeps the data.",
        examples="perdure delete ses_...\nperdure delete --yes ses_... ses_...",
    )
    options.add_attach(parser)
    parser.add_argument(
        "sessions",
        metavar="SESSION",
        nargs="+",
        help="ids of Sessions, or their beginnings; `perdure sessions` lists them",
    )
    parser.add_argument("-y", "--yes", action="store_true", help="delete without a question")
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    session_client.run(_delete(given.attach, environment, given.sessions, confirmed=given.yes))
    return 0


async def _delete(
    url: str | None, environment: Environment, names: list[str], *, confirmed: bool
) -> None:
    async with session_client.open_client(url, environment) as client:
        ids = [await session_client.find_session_id(client, name, url=url) for name in names]
        if not confirmed:
            await _confirm([await client.sessions.get(session_id) for session_id in ids])
        for session_id in ids:
            await client.sessions.delete(session_id)
            terminal.print_output(f"{terminal.one_line(session_id)} is deleted\n")


async def _confirm(sessions: list[SessionInfo]) -> None:
    """Raise Problem unless the user agrees."""
    if not terminal.is_interactive():
        raise Problem(
            "nothing is deleted: there is no terminal to ask at; --yes deletes without a question"
        )
    for session in sessions:
        terminal.print_note(f"{session['id']}  {terminal.one_line(session['title'])}\n")
    what = "this Session" if len(sessions) == 1 else f"these {len(sessions)} Sessions"
    answer = await terminal.ask(f"Delete {what} for ever? [y]es, [N]o: ")
    if answer.lower() not in {"y", "yes"}:
        raise Problem("nothing is deleted")
