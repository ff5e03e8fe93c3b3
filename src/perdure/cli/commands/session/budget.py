"""`perdure budget`: shows or limits the cost, tokens and turns of a Session and its subagents."""

from perdure.cli import options, session_client, terminal
from perdure.cli.render.tables import count
from perdure.client.generated.types import SessionUsage
from perdure.host.environment import Environment
from perdure.schema.codec import JsonObject


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "budget",
        "Show what a Session and its subagents have used, and how much they may use.\n"
        "An option changes one limit and keeps the others; --clear removes those that are not"
        " given.",
        examples="perdure budget ses_...\nperdure budget ses_... --cost 5 --turns 40\n"
        "perdure budget ses_... --clear",
    )
    options.add_attach(parser)
    options.add_session(parser)
    parser.add_argument("--cost", type=float, metavar="USD", help="limit the cost, in US dollars")
    parser.add_argument(
        "--tokens", type=int, metavar="N", help="limit the tokens of every kind, input and output"
    )
    parser.add_argument("--turns", type=int, metavar="N", help="limit the Provider Turns")
    parser.add_argument("--clear", action="store_true", help="remove the limits that are not given")
    options.add_format(parser)
    given = parser.parse_args(argv)
    wanted = {"cost": given.cost, "tokens": given.tokens, "turns": given.turns}
    bounds = {kind: bound for kind, bound in wanted.items() if bound is not None}
    if any(not 0 <= bound < 2**53 for bound in bounds.values()):
        parser.error("--cost, --tokens and --turns take a number that is not negative")
    environment = options.read_environment(given.data_dir)
    used, budget = session_client.run(
        _budget(given.attach, environment, given.session, bounds=bounds, clears=given.clear)
    )
    if given.format == "json":
        terminal.print_output(terminal.as_json({"budget": budget, "used": used["tree"]}) + "\n")
    else:
        terminal.print_output(_describe(used, budget))
    return 0


async def _budget(
    url: str | None, environment: Environment, name: str, *, bounds: JsonObject, clears: bool
) -> tuple[SessionUsage, JsonObject]:
    """Apply the limits, if any were given; return what was used and the Session's own limits."""
    async with session_client.open_session(url, environment, name) as (client, session_id):
        own: JsonObject = {**(await client.sessions.get(session_id)).get("budget", {})}
        if bounds or clears:
            changed = await client.sessions.set_budget(
                session_id, **{**({} if clears else own), **bounds}
            )
            own = {**changed.get("budget", {})}
        return await client.sessions.usage(session_id), own


def _describe(used: SessionUsage, own: JsonObject) -> str:
    """One line for each kind: what was used, and of how much."""
    tree = used["tree"]
    tokens = tree["tokens"]
    cache = tokens["cache"]
    total = (
        tokens["input"] + tokens["output"] + tokens["reasoning"] + cache["read"] + cache["write"]
    )
    limits: JsonObject = {**used.get("budget", {}), **own}
    rows = (
        ("cost", f"${tree['cost']:.4f}", limits.get("cost"), "${:.4f}"),
        ("tokens", count(total), limits.get("tokens"), "{:,}"),
        ("turns", str(tree["turns"]), limits.get("turns"), "{:,}"),
    )
    return "".join(
        f"{kind}: {spent}" + ("\n" if limit is None else f" of {form.format(limit)}\n")
        for kind, spent, limit, form in rows
    ) + ("" if limits else "no budget limits this Session\n")
