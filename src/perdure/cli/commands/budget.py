"""`perdure budget`: limits the cost, tokens and turns of a Session and its subagents."""

from perdure.cli import options, session_client, terminal
from perdure.client.generated.types import SessionInfo
from perdure.host.environment import Environment
from perdure.schema.codec import JsonObject


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "budget",
        "Limit what a Session and its subagents may use.\n"
        "A call replaces the whole budget: a limit that is not given is removed.",
        examples="perdure budget ses_... --cost 5 --turns 40",
    )
    options.add_attach(parser)
    options.add_session(parser)
    parser.add_argument("--cost", type=float, metavar="USD", help="limit the cost, in US dollars")
    parser.add_argument(
        "--tokens", type=int, metavar="N", help="limit the tokens of every kind, input and output"
    )
    parser.add_argument("--turns", type=int, metavar="N", help="limit the Provider Turns")
    given = parser.parse_args(argv)
    wanted = {"cost": given.cost, "tokens": given.tokens, "turns": given.turns}
    bounds = {kind: bound for kind, bound in wanted.items() if bound is not None}
    if any(not 0 <= bound < 2**53 for bound in bounds.values()):
        parser.error("--cost, --tokens and --turns take a number that is not negative")
    environment = options.read_environment(given.data_dir)
    session = session_client.run(_set_budget(given.attach, environment, given.session, bounds))
    budget = ", ".join(f"{kind} {bound}" for kind, bound in session.get("budget", {}).items())
    terminal.print_output(
        f"{terminal.one_line(given.session)}: {budget or 'no budget of its own'}\n"
    )
    return 0


async def _set_budget(
    url: str | None, environment: Environment, session_id: str, bounds: JsonObject
) -> SessionInfo:
    async with session_client.open_client(url, environment) as client:
        return await client.sessions.set_budget(session_id, **bounds)
