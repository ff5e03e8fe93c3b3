"""How a model is offered tools, and how its calls are read.

`native` is what the wire protocol has for them. `printed` reads calls that the model wrote into its
text besides: servers that people run themselves often do not recognise them. `constrained` is for
models that cannot call tools at all; see llm.tool_fallback.json_schema and docs/adr/0020.

Invariant: what a provider on the public internet answers is never read for calls by itself.
"""

from typing import Final

from perdure.core.web import address as web_address
from perdure.core.web.address import WebAddressError
from perdure.llm.route import ToolCallMode
from perdure.schema.codec import JsonValue

OPTION: Final = "toolCalls"
"""The Model Request Option that decides. It is never sent."""
_HOME_NAMES: Final = (".local", ".lan", ".home", ".internal", ".home.arpa")


def choose_mode(option: JsonValue, *, url: str | None, calls_tools: bool) -> ToolCallMode:
    """For a model that is spoken to in Chat Completions at `url`."""
    match option:
        case "native" | "printed" | "constrained":
            return option
        case _ if url is None or not is_local(url):
            return "native"
        case _:
            return "printed" if calls_tools else "constrained"


def is_local(url: str) -> bool:
    """Whether an address can only be a server of the user's own: this machine, or its network."""
    try:
        address = web_address.parse(url)
    except WebAddressError:
        return False
    host = address.host
    if address.number is not None:
        return not web_address.is_global(host)
    return address.names_this_machine or "." not in host or host.endswith(_HOME_NAMES)
