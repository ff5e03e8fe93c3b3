"""`perdure agents`: lists the agents that can be used in this directory."""

import os

from perdure.cli import options, session_client, terminal
from perdure.cli.render.tables import print_table
from perdure.client.generated.types import AgentInfo
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "agents",
        "List the agents that can be used in this directory: `run -a` takes the primary ones,\n"
        "and a model can call the subagents.",
        examples="perdure agents\nperdure agents --format json",
    )
    options.add_attach(parser)
    options.add_format(parser, json="one agent on each line")
    given = parser.parse_args(argv)
    found = session_client.run(_list_agents(given.attach, options.read_environment(given.data_dir)))
    if given.format == "json":
        for agent in found:
            terminal.print_output(terminal.as_json(agent) + "\n")
        return 0
    print_table(("AGENT", "MODE", "MODEL", "DESCRIPTION"), [_row(agent) for agent in found])
    return 0


async def _list_agents(url: str | None, environment: Environment) -> list[AgentInfo]:
    directory = os.getcwd() if url is None or is_loopback_url(url) else None
    async with session_client.open_location(url, environment) as client:
        found = await client.agents.list(directory=directory)
    return [agent for agent in found if not agent["hidden"]]


def _row(agent: AgentInfo) -> tuple[str, ...]:
    model = agent.get("model")
    name = "" if model is None else f"{model['providerID']}/{model['id']}"
    return agent["id"], agent["mode"], name, agent.get("description", "")
