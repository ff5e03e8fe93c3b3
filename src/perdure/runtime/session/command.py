"""Runs slash commands in Sessions by name: each is a prompt made from a template."""

from msgspec import UNSET, UnsetType

from perdure.core import limits
from perdure.runtime.session.engine_services import GetEngine
from perdure.runtime.session.sessions import Sessions
from perdure.schema.errors import InvalidRequestError, NotFoundError
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session.command import CommandRequest
from perdure.schema.session.prompt import AgentMention, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.settings.command import CommandInfo


class SessionCommands:
    def __init__(self, sessions: Sessions, engine: GetEngine) -> None:
        self._sessions = sessions
        self._engine = engine

    async def run(self, session_id: SessionID, asked: CommandRequest) -> AdmittedPrompt:
        """Admit the prompt that the command makes; a retry with the same id is recognised.

        Raises NotFoundError for an unknown command and InvalidRequestError for bad arguments.
        """
        _check_arguments(asked.arguments)
        location = await self._sessions.require_location(session_id)
        if asked.id is not None:
            # What the template runs may print something else the second time.
            admitted = await self._sessions.find_receipt(session_id, asked.id)
            if admitted is not None:
                return admitted
        command = await self._find(location, asked.name)
        text = await self._engine().template_commands.fill(
            location, command.template, asked.arguments
        )
        mentions = await self._switch(session_id, location, command, asked)
        given = PromptInput(text, asked.files or UNSET, mentions)
        return await self._sessions.prompt(session_id, given, location=location, id=asked.id)

    async def _find(self, location: LocationRef, name: str) -> CommandInfo:
        found = await self._engine().locations.commands(location)
        for command in found:
            if command.name == name:
                return command
        known = ", ".join(command.name for command in found[:20])
        raise NotFoundError(f"No command is named {name[:100]!r}. There are: {known}")

    async def _switch(
        self,
        session_id: SessionID,
        location: LocationRef,
        command: CommandInfo,
        asked: CommandRequest,
    ) -> tuple[AgentMention, ...] | UnsetType:
        """Choose agent and model; returns the subagent that the prompt is for, if it is for one."""
        model = asked.model if command.model is UNSET else command.model
        if model is not None:
            await self._sessions.switch_model(session_id, model)
        agent = asked.agent if command.agent is UNSET else command.agent
        if agent is None:
            return UNSET
        agents = await self._engine().locations.agents(location)
        known = next((each for each in agents if each.id == agent), None)
        if known is not None and known.mode == "subagent" and command.subtask is not False:
            return (AgentMention(agent),)
        await self._sessions.switch_agent(session_id, agent)
        return UNSET


def _check_arguments(arguments: str) -> None:
    if "\0" in arguments:
        raise InvalidRequestError("Arguments cannot contain a NUL character", field="arguments")
    if len(arguments) > limits.COMMAND_ARGUMENTS_BYTES_MAX:
        most = limits.COMMAND_ARGUMENTS_BYTES_MAX
        raise InvalidRequestError(f"The arguments exceed {most} characters", field="arguments")
