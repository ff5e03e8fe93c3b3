"""`perdure usage`: shows what a Session has used by model, alone and with its subagents."""

from perdure.cli import options, session_client, terminal
from perdure.client.generated.types import ModelUsage, SessionUsage, TokenUsage, UsageTotal
from perdure.host.environment import Environment


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "usage",
        "Show what a Session has used by model, alone and with its subagents, and its budget.",
        examples="perdure usage ses_...",
    )
    options.add_attach(parser)
    options.add_session(parser)
    options.add_format(parser)
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    used = session_client.run(_usage(given.attach, environment, given.session))
    terminal.print_output(
        terminal.as_json(used) + "\n" if given.format == "json" else _describe(used)
    )
    return 0


async def _usage(url: str | None, environment: Environment, name: str) -> SessionUsage:
    async with session_client.open_session(url, environment, name) as (client, session_id):
        return await client.sessions.usage(session_id)


def _describe(used: SessionUsage) -> str:
    own, tree = used["session"], used["tree"]
    lines = [_total("Session", own), *map(_line, own["models"])]
    if tree != own:
        lines += [_total("with subagents", tree), *map(_line, tree["models"])]
    if "budget" in used:
        bounds = ", ".join(f"{kind} {bound}" for kind, bound in used["budget"].items())
        lines.append(f"budget: {bounds}")
    return "".join(f"{line}\n" for line in lines)


def _total(name: str, total: UsageTotal) -> str:
    return f"{name}: ${total['cost']:.4f}, {total['turns']} turns, {_tokens(total['tokens'])}"


def _line(line: ModelUsage) -> str:
    model = f"{line['model']['providerID']}/{line['model']['id']}"
    used = f"${line['cost']:.4f}, {line['requests']} requests, {_tokens(line['tokens'])}"
    return f"  {terminal.one_line(model)} ({line['purpose']}): {used}"


def _tokens(tokens: TokenUsage) -> str:
    cache = tokens["cache"]
    return (
        f"tokens: {tokens['input']} in, {tokens['output']} out, {tokens['reasoning']} reasoning,"
        f" cache {cache['read']} read, {cache['write']} written"
    )
