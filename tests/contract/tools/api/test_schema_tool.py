"""Tools with a JSON Schema: permission before each call, bounds, and who is offered them."""

from typing import Final

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.llm.request import ToolDefinition
from perdure.ports import PermissionAsk, PermissionBlockedError, PermissionDeclinedError
from perdure.schema.approval.permission import Rule
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.tool import FileContent, TextContent
from perdure.tools.api.registry import (
    ToolError,
    ToolRegistrationError,
    ToolRegistry,
    ToolSuccess,
)
from perdure.tools.api.schema_tool import SchemaTool, SchemaToolResult
from perdure.tools.api.tool import Progress, ToolCallContext, ToolFailure
from tests.contract.tools.tool_bench import CONTEXT

SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {"city": {"type": "string", "x-unknown": [1]}},
    "required": ["city"],
}
IMAGE: Final = FileContent(uri="data:image/png;base64,AA==", mime="image/png")


class Weather:
    """A tool that reports progress, then gives a text, an image and a structured value."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.inputs: list[JsonObject] = []
        self.fails = fails

    async def execute(self, input: JsonObject, context: ToolCallContext) -> SchemaToolResult:
        self.inputs.append(input)
        if self.fails is not None:
            raise self.fails
        context.progress("looking")
        return SchemaToolResult(
            structured={"degrees": 21}, content=(TextContent(text="warm"), IMAGE)
        )

    def tool(self, **changes: JsonValue) -> SchemaTool:
        made = SchemaTool(
            name="weather", description="Tell it.", schema=SCHEMA, execute=self.execute
        )
        return replace(made, **changes)


class Gate:
    """Keeps what it is asked, and answers with an error if it has one."""

    def __init__(self, answer: Exception | None = None) -> None:
        self.asked: list[PermissionAsk] = []
        self.answer = answer

    async def require(self, ask: PermissionAsk) -> None:
        self.asked.append(ask)
        if self.answer is not None:
            raise self.answer

    @property
    def context(self) -> ToolCallContext:
        return replace(CONTEXT, require=self.require)


async def test_a_call_asks_first_and_gives_everything_back() -> None:
    registry, weather, gate = ToolRegistry(), Weather(), Gate()
    reported: list[Progress] = []
    context = replace(gate.context, report=reported.append)
    with registry.register_schema(weather.tool(action="sky")):
        settled = await registry.materialize(()).settle("weather", {"city": "Oslo"}, context)
    assert settled == ToolSuccess({"degrees": 21}, (TextContent(text="warm"), IMAGE))
    (ask,) = gate.asked
    assert (ask.action, ask.resources, ask.save) == ("sky", ("*",), ("*",))
    assert ask.metadata == {"tool": "weather", "input": {"city": "Oslo"}}
    assert ask.source == context.source
    assert [progress.content for progress in reported] == [(TextContent(text="looking"),)]


async def test_a_call_that_is_not_permitted_does_not_run() -> None:
    registry, weather = ToolRegistry(), Weather()
    with registry.register_schema(weather.tool()):
        turn = registry.materialize(())
        blocked = Gate(PermissionBlockedError("a rule says no"))
        assert await turn.settle("weather", {}, blocked.context) == ToolError("a rule says no")
        declined = Gate(PermissionDeclinedError("no"))
        with pytest.raises(PermissionDeclinedError):
            await turn.settle("weather", {}, declined.context)
        without_a_gate = await turn.settle("weather", {}, CONTEXT)
    assert without_a_gate == ToolError("No permission can be asked for here: weather")
    assert weather.inputs == []


async def test_the_permission_may_depend_on_the_input() -> None:
    registry, weather, gate = ToolRegistry(), Weather(), Gate()

    def asks(input: JsonObject) -> str:
        if "city" not in input:
            raise ToolFailure("Say which city.")
        return f"weather_{input['city']}"

    with registry.register_schema(weather.tool(asks=asks)):
        turn = registry.materialize(())
        assert await turn.settle("weather", {}, gate.context) == ToolError("Say which city.")
        await turn.settle("weather", {"city": "Oslo"}, gate.context)
    assert [ask.action for ask in gate.asked] == ["weather_Oslo"]


async def test_a_failure_is_for_the_model_and_half_a_character_never_arrives() -> None:
    registry, weather, gate = ToolRegistry(), Weather(ToolFailure("no such city")), Gate()
    with registry.register_schema(weather.tool()):
        turn = registry.materialize(())
        assert await turn.settle("weather", {}, gate.context) == ToolError("no such city")
        broken = await turn.settle("weather", {"city": "\ud800"}, gate.context)
    assert isinstance(broken, ToolError)
    assert "half a character" in broken.message
    assert len(weather.inputs) == 1


def nested(levels: int) -> JsonObject:
    value: JsonObject = {"type": "object"}
    for _ in range(levels):
        value = {"type": "object", "properties": value}
    return value


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": "1st"}, "name"),
        ({"name": "a.b"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"schema": {}}, "object"),
        ({"schema": {"type": "array"}}, "object"),
        ({"schema": nested(limits.TOOL_SCHEMA_DEPTH_MAX)}, "deep"),
        ({"schema": nested(50_000)}, "deep"),
        ({"schema": {"type": "object", "x": "a" * limits.TOOL_SCHEMA_BYTES_MAX}}, "larger"),
        ({"schema": {"type": "object", "x": "\ud800"}}, "valid JSON"),
        ({"schema": {"type": "object", "x": {1, 2}.pop}}, "valid JSON"),
    ],
    ids=[f"row {number}" for number in range(11)],
)
def test_what_cannot_be_offered_is_refused_at_once(changes: JsonObject, reason: str) -> None:
    registry = ToolRegistry()
    with pytest.raises(ToolRegistrationError, match=reason):
        registry.register_schema(Weather().tool(**changes))
    assert registry.names() == set()


def test_a_listed_tool_is_offered_only_to_turns_that_name_it_as_they_name_it() -> None:
    registry = ToolRegistry()
    older = {"weather": ToolDefinition("weather", "As it was.", SCHEMA)}
    with (
        registry.register_schema(Weather().tool(), listed=True),
        registry.register_schema(Weather().tool(name="always")),
    ):
        assert [one.name for one in registry.materialize(()).definitions] == ["always"]
        turn = registry.materialize((), listed=older)
        assert [one.description for one in turn.definitions] == ["Tell it.", "As it was."]
        assert registry.materialize((), listed=older) is turn
        denied = (Rule("weather", "*", "deny"),)
        assert [one.name for one in registry.materialize(denied, listed=older).definitions] == [
            "always"
        ]
    assert registry.materialize((), listed=older).definitions == ()


async def test_a_listed_tool_that_a_turn_does_not_name_cannot_be_called() -> None:
    registry, weather, gate = ToolRegistry(), Weather(), Gate()
    with registry.register_schema(weather.tool(), listed=True):
        settled = await registry.materialize(()).settle("weather", {}, gate.context)
    assert settled == ToolError("Unknown tool: weather")
    assert gate.asked == []
