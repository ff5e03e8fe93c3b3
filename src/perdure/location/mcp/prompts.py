"""Prompts of MCP servers as commands of a Location.

A prompt with arguments becomes a template with `$1`, `$2` and so on, in the order that the server
gives them. Only servers that are connected are asked; what one does not answer is left out.
"""

import asyncio
import itertools
import logging
from typing import Final

from msgspec import UNSET

from perdure.core import limits
from perdure.core.mcp import tool_names
from perdure.core.text import jsonc
from perdure.location.mcp.server import RunningServer
from perdure.ports.mcp import McpConnection, McpError
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.settings.command import CommandInfo

logger = logging.getLogger(__name__)

_JOINED: Final = "\n"


async def list_commands(server: RunningServer) -> tuple[CommandInfo, ...]:
    """The prompts of a server as commands, named `server:prompt`."""
    connection = server.connection
    if connection is None or "prompts" not in connection.lists:
        return ()
    found: list[CommandInfo] = []
    try:
        async with asyncio.timeout(server.server.request_seconds):
            listed = await connection.list("prompts")
            named = (
                one for one in listed if jsonc.is_object(one) and isinstance(one.get("name"), str)
            )
            for prompt in itertools.islice(named, limits.MCP_PROMPTS_MAX):
                command = await _command(server.server.name, prompt, connection)
                found.append(command)
    except (McpError, TimeoutError) as error:
        logger.warning("prompts of %s were not read: %s", server.server.name, error)
    return tuple(found)


async def _command(server: str, prompt: JsonObject, connection: McpConnection) -> CommandInfo:
    given: JsonValue = prompt.get("arguments")
    names = [
        argument["name"]
        for argument in (given if jsonc.is_list(given) else [])
        if jsonc.is_object(argument) and isinstance(argument.get("name"), str)
    ]
    arguments = {name: f"${index}" for index, name in enumerate(names, start=1)}
    answer = await connection.get_prompt(prompt["name"], arguments)
    about = prompt.get("description") or prompt.get("title")
    return CommandInfo(
        name=f"{tool_names.sanitize(server)}:{tool_names.sanitize(prompt['name'])}",
        template=_text(answer),
        description=about if isinstance(about, str) else UNSET,
    )


def _text(answer: JsonObject) -> str:
    messages: JsonValue = answer.get("messages")
    texts: list[str] = []
    for message in messages if jsonc.is_list(messages) else []:
        content: JsonValue = message.get("content") if jsonc.is_object(message) else None
        text: JsonValue = content.get("text") if jsonc.is_object(content) else None
        if isinstance(text, str):
            texts.append(text.encode(errors="replace").decode())
    return _JOINED.join(texts)[: limits.MCP_PROMPT_CHARS_MAX]
