"""`perdure usage`: what a Session has used, model by model, alone and with all below it."""

from perdure.cli import options, session_client, terminal
from perdure.client.generated.types import ModelUsage, SessionUsage, TokenUsage, UsageTotal
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.parser("usage", "What a Session has used, and what of its budget is left.")
    options.add_attach(parser)
    parser.add_argument("session", metavar="SESSION")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    given = parser.parse_args(argv)
    surroundings = options.surroundings(given.data_dir)
    used = session_client.run(_usage(given.attach, surroundings, given.session))
    terminal.say(terminal.as_json(used) + "\n" if given.format == "json" else _shown(used))
    return 0


async def _usage(url: str | None, surroundings: Environment, session_id: str) -> SessionUsage:
    async with session_client.open_client(url, surroundings) as client:
        return await client.sessions.usage(session_id)


def _shown(used: SessionUsage) -> str:
    own, tree = used["session"], used["tree"]
    lines = [_total("Session", own), *map(_line, own["models"])]
    if tree != own:
        lines += [_total("with all below it", tree), *map(_line, tree["models"])]
    if "budget" in used:
        bounds = ", ".join(f"{kind} {bound}" for kind, bound in used["budget"].items())
        lines.append(f"budget: {bounds}")
    return "".join(f"{line}\n" for line in lines)


def _total(name: str, total: UsageTotal) -> str:
    return f"{name}: ${total['cost']:.4f}, {total['turns']} turns, {_tokens(total['tokens'])}"


def _line(line: ModelUsage) -> str:
    model = f"{line['model']['providerID']}/{line['model']['id']}"
    told = f"${line['cost']:.4f}, {line['requests']} requests, {_tokens(line['tokens'])}"
    return f"  {terminal.one_line(model)} ({line['purpose']}): {told}"


def _tokens(tokens: TokenUsage) -> str:
    cache = tokens["cache"]
    return (
        f"tokens: {tokens['input']} in, {tokens['output']} out, {tokens['reasoning']} reasoning,"
        f" cache {cache['read']} read, {cache['write']} written"
    )
