"""How tools are offered to a model, and how its calls are read.

`native` uses the wire protocol. `printed` additionally reads calls that the model wrote into its
text, because self-hosted servers often do not recognise them. `constrained` is for models that
cannot call tools at all; see llm.tool_fallback.json_schema and docs/adr/0020.

Invariant: without configuration, answers from the public internet are never parsed for calls.
"""

from typing import Final

from perdure.core.web import address as web_address
from perdure.core.web.address import WebAddressError
from perdure.llm.route import ToolCallMode
from perdure.schema.codec import JsonValue

OPTION: Final = "toolCalls"
"""The Model Request Option that sets the mode. It is never sent."""
_HOME_NAMES: Final = (".local", ".lan", ".home", ".internal", ".home.arpa")


def choose_mode(option: JsonValue, *, url: str | None, calls_tools: bool) -> ToolCallMode:
    """The mode of a Chat Completions model at `url`."""
    match option:
        case "native" | "printed" | "constrained":
            return option
        case _ if url is None or not is_local(url):
            return "native"
        case _:
            return "printed" if calls_tools else "constrained"


def is_local(url: str) -> bool:
    """Whether a URL is on this machine or in the local network."""
    try:
        address = web_address.parse(url)
    except WebAddressError:
        return False
    host = address.host
    if address.number is not None:
        return not web_address.is_global(host)
    return address.names_this_machine or "." not in host or host.endswith(_HOME_NAMES)
