"""`perdure models`: lists the models that can be used in this directory."""

import os

from perdure.cli import options, session_client, suggestion, terminal
from perdure.cli.problem import Problem
from perdure.cli.render.tables import count, print_table
from perdure.client.generated.types import ModelInfo
from perdure.host.environment import Environment
from perdure.net.loopback import is_loopback_url


def main(argv: list[str]) -> int:
    parser = options.make_parser(
        "models",
        "List the models that can be used in this directory: of providers with a credential,\n"
        "of the configuration, and the built-in one. Prices are in US dollars for a million"
        " tokens.",
        examples="perdure models\nperdure models anthropic",
    )
    options.add_attach(parser)
    options.add_local_models(parser)
    parser.add_argument(
        "provider", nargs="?", metavar="PROVIDER", help="list the models of this provider alone"
    )
    options.add_format(parser, json="one model on each line")
    given = parser.parse_args(argv)
    environment = options.read_environment(given.data_dir)
    found = session_client.run(
        _list_models(given.attach, environment, local_models=given.local_models)
    )
    if given.provider is not None:
        providers = [model["providerID"] for model in found]
        if given.provider not in providers:
            close = suggestion.did_you_mean(given.provider, providers)
            raise Problem(
                f"no model of {terminal.one_line(given.provider)} can be used here"
                f"{close or f'; store a key with: perdure auth login {given.provider}'}"
            )
        found = tuple(model for model in found if model["providerID"] == given.provider)
    if given.format == "json":
        for model in found:
            terminal.print_output(terminal.as_json(model) + "\n")
        return 0
    print_table(("MODEL", "CONTEXT", "IN", "OUT", "NAME"), [_row(model) for model in found])
    return 0


async def _list_models(
    url: str | None, environment: Environment, *, local_models: bool
) -> tuple[ModelInfo, ...]:
    is_local = url is None or is_loopback_url(url)
    directory = os.getcwd() if is_local else None
    opened = session_client.open_location(url, environment, local_models=local_models)
    async with opened as client:
        found = await client.models.list(directory=directory)
    usable = [model for model in found if model["enabled"]]
    return tuple(sorted(usable, key=lambda model: (model["providerID"], model["id"])))


def _row(model: ModelInfo) -> tuple[str, ...]:
    costs = model["cost"]
    prices = (f"${costs[0]['input']:g}", f"${costs[0]['output']:g}") if costs else ("", "")
    context = model["limit"]["context"]
    name = f"{model['providerID']}/{model['id']}"
    return (name, count(context) if context else "", *prices, model["name"])
