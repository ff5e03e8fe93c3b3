"""`perdure budget`: what a Session may use, with all below it, before a person decides again."""

from perdure.cli import options, session_client, terminal
from perdure.client.generated.types import SessionInfo
from perdure.host.environment import Environment
from perdure.schema.codec import JsonObject


def main(argv: list[str]) -> int:
    parser = options.parser(
        "budget", "Bound what a Session may use. What is not given is not bounded any more."
    )
    options.add_attach(parser)
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--cost", type=float, help="in US dollars")
    parser.add_argument("--tokens", type=int, help="of every kind, in and out")
    parser.add_argument("--turns", type=int)
    given = parser.parse_args(argv)
    wanted = {"cost": given.cost, "tokens": given.tokens, "turns": given.turns}
    bounds = {kind: bound for kind, bound in wanted.items() if bound is not None}
    if any(not 0 <= bound < 2**53 for bound in bounds.values()):
        parser.error("a bound is a number that is not negative")
    surroundings = options.surroundings(given.data_dir)
    session = session_client.run(_set(given.attach, surroundings, given.session, bounds))
    told = ", ".join(f"{kind} {bound}" for kind, bound in session.get("budget", {}).items())
    terminal.say(f"{terminal.one_line(given.session)}: {told or 'no budget of its own'}\n")
    return 0


async def _set(
    url: str | None, surroundings: Environment, session_id: str, bounds: JsonObject
) -> SessionInfo:
    async with session_client.open_client(url, surroundings) as client:
        return await client.sessions.set_budget(session_id, **bounds)
