"""Dialect: the form of updates and requests in one version of the protocol. Version 1 is here."""

from typing import Protocol

from perdure.acp.schema.updates import Update
from perdure.acp.show.asking import Asked
from perdure.schema.codec import JsonObject


class Dialect(Protocol):
    """One version of the protocol."""

    echoes_prompts: bool
    """Whether a client is told its own prompts when they join the conversation."""
    tells_state: bool
    """Whether the client is told when a Session works and when it stops."""
    has_modes: bool
    """Whether agents are also told as modes."""

    def update(self, session_id: str, update: Update) -> object | None:
        """The `session/update`; None for what this version does not tell."""
        ...

    def permission(self, session_id: str, asked: Asked) -> object:
        """The parameters of `session/request_permission`."""
        ...


class FirstVersion:
    """Implements Dialect: the messages are made in the form of this version."""

    echoes_prompts = False
    tells_state = False
    has_modes = True

    def update(self, session_id: str, update: Update) -> object | None:
        return {"sessionId": session_id, "update": update}

    def permission(self, session_id: str, asked: Asked) -> JsonObject:
        return {"sessionId": session_id, "toolCall": asked.call, "options": asked.options}
