"""The registry of tools: scoped registration, the tools of a turn, and running their calls.

Registrations of one name form a stack; leaving a scope removes its entry and reveals the one
before. A Location's registry lies over the one of the whole application. The registry neither
bounds output (tools.api.output_store does) nor records it.

A listed registration is offered to the turns that name it, with the definition that they name: what
an MCP server calls a tool may change in the middle of a Session (location.mcp).

Invariant: a call runs the registration that its turn advertised, or it does not run.
"""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from types import MappingProxyType
from typing import Final

import msgspec

from perdure.core import limits
from perdure.core.approval import rules as permission
from perdure.core.approval.rules import Rules
from perdure.core.request import token_budget
from perdure.core.text import wildcard
from perdure.lazy_pattern import lazy_pattern
from perdure.llm.request import ToolDefinition
from perdure.ports import PermissionBlockedError, PermissionCorrectedError
from perdure.schema import codec
from perdure.schema.approval.permission import Ruleset
from perdure.schema.codec import JsonObject
from perdure.schema.ids import MessageID
from perdure.schema.session.todo import Todos
from perdure.schema.session.tool import ToolContent
from perdure.schema.type_schema import TypeSchemaError
from perdure.schema.value import Value
from perdure.tools.api import schema_tool
from perdure.tools.api.input_schema import input_schema, without_nulls
from perdure.tools.api.schema_tool import SchemaTool
from perdure.tools.api.tool import InputT, OutputT, Tool, ToolCallContext, ToolEffect, ToolFailure

_NAME: Final = lazy_pattern(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_NAME_CHARS_SHOWN: Final = 100
_HALF_A_CHARACTER: Final = "Invalid tool input: not valid Unicode, a text holds half a character"


class ToolRegistrationError(ValueError):
    """The tool cannot be offered to a model: its name or its input type is not usable."""


class ToolSuccess(Value):
    structured: JsonObject
    content: tuple[ToolContent, ...] = ()
    output_paths: tuple[str, ...] = ()
    """Managed Tool Output Files that the tool wrote."""
    reads: tuple[str, ...] = ()
    """Files whose content the model is shown."""
    todos: Todos | None = None
    """The new todo list of the Session, if the call wrote it."""
    delivers: MessageID | None = None
    """The prompt of a child Session whose result this is."""


class ToolError(Value):
    message: str


Settled = ToolSuccess | ToolError


class Registration(Value, eq=False):
    """One registration of a tool, without its type parameters. Compared by identity."""

    definition: ToolDefinition
    permission_action: str
    effect: ToolEffect
    asks_first: bool
    run: Callable[[JsonObject, ToolCallContext], Awaitable[Settled]]
    listed: bool = False
    """Whether only turns that name it are offered it."""


ListedTools = Mapping[str, ToolDefinition]
"""The listed tools of a turn, by name, with the definitions that it advertises."""


NOTHING_LISTED: Final[ListedTools] = MappingProxyType({})


class ToolRegistry:
    def __init__(self, *, application: "ToolRegistry | None" = None) -> None:
        self._application = application
        self._stacks: dict[str, list[Registration]] = {}
        self._changes = 0
        self._turn_tools: dict[tuple[int, ...], _Materialized] = {}

    def register(self, tool: Tool[InputT, OutputT]) -> AbstractContextManager[None]:
        """Offer `tool` while the scope is open. Raises ToolRegistrationError at once."""
        return self._scope(tool.name, _registration(tool))

    def register_schema(
        self, tool: SchemaTool, *, listed: bool = False
    ) -> AbstractContextManager[None]:
        """Offer a tool with a JSON Schema while the scope is open; each call asks for permission.

        With `listed` only the turns that name it are offered it. Raises ToolRegistrationError at
        once, also for a schema that is too large or too deep.
        """
        return self._scope(tool.name, _schema_registration(tool, listed=listed))

    def names(self) -> set[str]:
        below: set[str] = set() if self._application is None else self._application.names()
        return below | self._stacks.keys()

    def names_for_all(self) -> set[str]:
        """The names that every turn is offered: those of registrations that are not listed."""
        held = {name: self.holder(name) for name in self.names()}
        return {name for name, one in held.items() if one is not None and not one.listed}

    def holder(self, name: str) -> Registration | None:
        """The registration that holds `name` now."""
        if name in self._stacks:
            return self._stacks[name][-1]
        return None if self._application is None else self._application.holder(name)

    @property
    def version(self) -> int:
        """Grows with every registration that begins or ends, here or in the application."""
        below = 0 if self._application is None else self._application.version
        return self._changes + below

    def materialize(self, *rules: Rules, listed: ListedTools = NOTHING_LISTED) -> "TurnTools":
        """The tools of one turn: all but those that one of the rulesets denies for everything.

        Of the listed registrations, those in `listed`. The same arguments give the same object
        until a registration changes.
        """
        # By identity: an agent's rules are one object until its configuration changes.
        key, version = (*map(id, rules), id(listed)), self.version
        kept = self._turn_tools.get(key)
        if kept is not None and kept.version == version:
            return kept.tools
        if len(self._turn_tools) >= limits.TURN_TOOLS_KEPT_MAX:
            self._turn_tools.clear()
        tools = self._materialize(rules, listed)
        self._turn_tools[key] = _Materialized(rules, listed, version, tools)
        return tools

    def _materialize(self, rules: tuple[Rules, ...], listed: ListedTools) -> "TurnTools":
        held = {name: self.holder(name) for name in sorted(self.names())}
        offered = {
            name: registration
            for name, registration in held.items()
            if registration is not None
            and (name in listed or not registration.listed)
            and not is_denied(rules, registration.permission_action)
        }
        return TurnTools(self, offered, listed)

    @contextmanager
    def _scope(self, name: str, registration: Registration) -> Generator[None]:
        stack = self._stacks.setdefault(name, [])
        stack.append(registration)
        self._changes += 1
        try:
            yield
        finally:
            self._changes += 1
            stack.remove(registration)
            if not stack:
                del self._stacks[name]


class TurnTools:
    """The tools that one turn advertised. Its calls run against these and no others."""

    def __init__(
        self,
        registry: ToolRegistry,
        offered: Mapping[str, Registration],
        listed: ListedTools = NOTHING_LISTED,
    ) -> None:
        self._registry = registry
        self._offered = offered
        self.definitions = tuple(
            listed[name] if registration.listed else registration.definition
            for name, registration in offered.items()
        )

    @cached_property
    def tokens(self) -> int:
        """The estimated size of the definitions in a request."""
        return token_budget.estimate_tools(self.definitions)

    def effect(self, name: str) -> ToolEffect:
        """What a second execution would do; `once` for a tool that is not offered."""
        registration = self._offered.get(name)
        return "once" if registration is None else registration.effect

    def asks_first(self, name: str) -> bool:
        """Whether the tool asks for all permissions before it does anything."""
        registration = self._offered.get(name)
        return registration is not None and registration.asks_first

    async def settle(self, name: str, input: JsonObject, context: ToolCallContext) -> Settled:
        """Run one call. Declined permissions, rejected questions and defects are raised."""
        registration = self._offered.get(name)
        if registration is None:
            return ToolError(f"Unknown tool: {name[:_NAME_CHARS_SHOWN]}")
        if self._registry.holder(name) is not registration:
            return ToolError(f"Stale tool call: {name}")
        return await registration.run(input, context)


class _Materialized(Value):
    rules: tuple[Rules, ...]
    listed: ListedTools
    """Kept alive as the rules are, so that their identities stay theirs."""
    version: int
    tools: TurnTools


def _registration(tool: Tool[InputT, OutputT]) -> Registration:
    if _NAME.fullmatch(tool.name) is None:
        raise ToolRegistrationError(f"invalid tool name {tool.name!r}")
    try:
        schema = input_schema(tool.input)
    except TypeSchemaError as error:
        raise ToolRegistrationError(f"tool {tool.name!r}: {error}") from error

    async def run(input: JsonObject, context: ToolCallContext) -> Settled:
        return await _run(tool, input, context)

    return Registration(
        definition=ToolDefinition(tool.name, tool.description, schema),
        permission_action=tool.permission_action,
        effect=tool.effect,
        asks_first=tool.asks_first,
        run=run,
    )


def _schema_registration(tool: SchemaTool, *, listed: bool) -> Registration:
    if _NAME.fullmatch(tool.name) is None:
        raise ToolRegistrationError(f"invalid tool name {tool.name!r}")
    fault = schema_tool.find_fault(tool.schema)
    if fault is not None:
        raise ToolRegistrationError(f"tool {tool.name!r}: {fault}")

    async def run(input: JsonObject, context: ToolCallContext) -> Settled:
        return await _run_schema_tool(tool, input, context)

    return Registration(
        definition=ToolDefinition(tool.name, tool.description, tool.schema),
        permission_action=tool.permission_action,
        effect=tool.effect,
        asks_first=True,
        run=run,
        listed=listed,
    )


async def _run_schema_tool(
    tool: SchemaTool, input: JsonObject, context: ToolCallContext
) -> Settled:
    try:
        codec.encode(input)
    except UnicodeEncodeError:
        return ToolError(_HALF_A_CHARACTER)
    try:
        await context.require(schema_tool.permission_ask(tool, input, context))
        result = await tool.execute(input, context)
    except ToolFailure as error:
        return ToolError(str(error))
    except (PermissionBlockedError, PermissionCorrectedError) as error:
        return ToolError(str(error) or f"Permission denied: {tool.permission_action}")
    try:
        structured = codec.decode_any(codec.encode(result.structured))
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        return ToolError(f"Invalid tool output: {error}")
    return ToolSuccess(structured, result.content)


async def _run(tool: Tool[InputT, OutputT], input: JsonObject, context: ToolCallContext) -> Settled:
    try:
        # What cannot be written down cannot be told, kept or printed either.
        codec.encode(input)
        decoded = codec.convert(tool.input, without_nulls(tool.input, input))
    except UnicodeEncodeError:
        return ToolError(_HALF_A_CHARACTER)
    except msgspec.ValidationError as error:
        return ToolError(f"Invalid tool input: {error}")
    try:
        output = await tool.execute(decoded, context)
    except ToolFailure as error:
        return ToolError(str(error))
    except (PermissionBlockedError, PermissionCorrectedError) as error:
        # A rule's reason and a person's words are for the model: it can act on them.
        return ToolError(str(error) or f"Permission denied: {tool.permission_action}")
    return _success(tool, output)


def _success(tool: Tool[InputT, OutputT], output: OutputT) -> Settled:
    try:
        valid = codec.decode(tool.output, codec.encode(output))
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        return ToolError(f"Invalid tool output: {error}")
    content = () if tool.to_model_output is None else tool.to_model_output(valid)
    structured = valid if tool.structured is None else tool.structured(valid)
    reads = () if tool.reads is None else tool.reads(valid)
    todos = None if tool.todos is None else tool.todos(valid)
    delivers = None if tool.delivers is None else tool.delivers(valid)
    paths = () if tool.output_paths is None else tool.output_paths(valid)
    # Through the codec, so that what is live equals what is read back: lists, never tuples.
    plain = codec.decode_any(codec.encode(structured))
    return ToolSuccess(
        plain, content, output_paths=paths, reads=reads, todos=todos, delivers=delivers
    )


def is_denied(rules: Iterable[Rules], action: str) -> bool:
    """Whether one of the rulesets denies the action for everything, so that it is not offered."""
    rulesets = (each for given in rules for each in permission.rulesets(given))
    return any(_denied_everywhere(each, action) for each in rulesets)


def _denied_everywhere(rules: Ruleset, action: str) -> bool:
    for rule in reversed(rules):
        if wildcard.matches(rule.action, action):
            return rule.effect == "deny" and rule.resource == "*"
    return False
