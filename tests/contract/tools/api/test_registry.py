"""Registration scopes, what a turn advertises, and settling calls."""

import asyncio
from typing import Annotated

import pytest
from msgspec import UNSET, Meta, UnsetType

from perdure.ports import (
    PermissionBlockedError,
    PermissionCorrectedError,
    PermissionDeclinedError,
)
from perdure.schema.approval.permission import Effect, Rule
from perdure.schema.codec import JsonObject, Record
from perdure.schema.session.tool import TextContent
from perdure.tools.api.registry import (
    Settled,
    ToolError,
    ToolRegistrationError,
    ToolRegistry,
    ToolSuccess,
    TurnTools,
)
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from tests.contract.tools.tool_bench import CONTEXT
from tests.requirements import requirement


class Item(Record, frozen=True):
    title: str


class Input(Record, frozen=True):
    """For the reader of the class."""

    text: Annotated[str, Meta(description="What to say.")]
    times: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    items: tuple[Item, ...] = ()


class Output(Record, frozen=True):
    said: Annotated[str, Meta(max_length=10)]


class Nested(Record, frozen=True):
    children: "tuple[Nested, ...]" = ()


def make(
    name: str = "say",
    *,
    reply: str | BaseException = "ok",
    action: str | None = None,
    calls: list[Input] | None = None,
) -> Tool[Input, Output]:
    async def execute(input: Input, context: ToolCallContext) -> Output:
        if calls is not None:
            calls.append(input)
        if isinstance(reply, BaseException):
            raise reply
        return Output(said=reply)

    return Tool(
        name=name,
        description="Say something.",
        input=Input,
        output=Output,
        execute=execute,
        to_model_output=lambda output: (TextContent(text=f"said {output.said}"),),
        action=action,
    )


async def settle(turn: TurnTools, input: JsonObject | None = None) -> Settled:
    return await turn.settle("say", {"text": "hi"} if input is None else input, CONTEXT)


def advertised(registry: ToolRegistry, *rules: tuple[str, str, Effect]) -> list[str]:
    ruleset = tuple(Rule(action=a, resource=r, effect=e) for a, r, e in rules)
    return [definition.name for definition in registry.materialize(ruleset).definitions]


@requirement("S166")
async def test_a_valid_call_gives_its_structured_result_and_what_the_model_sees() -> None:
    registry = ToolRegistry()
    with registry.register(make()):
        settled = await settle(registry.materialize(()))
    assert settled == ToolSuccess({"said": "ok"}, (TextContent(text="said ok"),))


@requirement("S166")
@pytest.mark.parametrize(
    ("input", "named"),
    [
        ({}, "`text`"),
        ({"text": 3}, "$.text"),
        ({"text": None}, "$.text"),
        ({"text": "hi", "times": 0}, "$.times"),
        ({"text": "hi", "items": [{"title": 1}]}, "$.items[0].title"),
    ],
)
async def test_bad_input_is_answered_with_the_field_and_not_executed(
    input: JsonObject, named: str
) -> None:
    registry, calls = ToolRegistry(), list[Input]()
    with registry.register(make(calls=calls)):
        settled = await settle(registry.materialize(()), input)
    assert isinstance(settled, ToolError)
    assert settled.message.startswith("Invalid tool input: ")
    assert named in settled.message
    assert calls == []


async def test_null_for_an_optional_field_means_that_it_was_left_out() -> None:
    registry, calls = ToolRegistry(), list[Input]()
    with registry.register(make(calls=calls)):
        await settle(registry.materialize(()), {"text": "hi", "times": None, "unknown": None})
    assert calls == [Input(text="hi")]


@requirement("S166")
async def test_output_that_breaks_its_own_type_does_not_reach_the_model() -> None:
    registry = ToolRegistry()
    for reply in ("longer than ten", "\ud800"):
        with registry.register(make(reply=reply)):
            settled = await settle(registry.materialize(()))
        assert isinstance(settled, ToolError)
        assert settled.message.startswith("Invalid tool output: ")


@pytest.mark.parametrize(
    "error",
    [
        ToolFailure("it broke"),
        PermissionBlockedError("denied by rule: edit secret.txt"),
        PermissionCorrectedError("use the other file"),
    ],
)
async def test_what_the_model_can_act_on_reaches_it_in_full(error: Exception) -> None:
    registry = ToolRegistry()
    with registry.register(make(reply=error)):
        assert await settle(registry.materialize(())) == ToolError(str(error))


@pytest.mark.parametrize(
    "error", [PermissionDeclinedError(), ZeroDivisionError(), asyncio.CancelledError()]
)
async def test_refusals_defects_and_cancellation_travel_on(error: BaseException) -> None:
    registry = ToolRegistry()
    with registry.register(make(reply=error)), pytest.raises(type(error)):
        await settle(registry.materialize(()))


@requirement("S186")
async def test_a_call_of_a_tool_that_was_not_offered_is_unknown() -> None:
    registry = ToolRegistry()
    turn = registry.materialize(())
    with registry.register(make()):
        assert await settle(turn) == ToolError("Unknown tool: say")


@requirement("S186")
async def test_a_call_of_a_tool_that_is_gone_or_replaced_is_stale_and_not_run() -> None:
    registry, calls = ToolRegistry(), list[Input]()
    stale = ToolError("Stale tool call: say")
    older, newer = registry.register(make()), registry.register(make(calls=calls))
    with older:
        before = registry.materialize(())
        with newer:
            during = registry.materialize(())
            assert await settle(before) == stale
        assert await settle(during) == stale
        assert await settle(before) != stale
    assert await settle(before) == stale
    assert calls == []


async def test_the_latest_registration_wins_and_scopes_may_close_in_any_order() -> None:
    registry = ToolRegistry()
    first, second = registry.register(make(reply="1")), registry.register(make(reply="2"))
    first.__enter__()
    second.__enter__()
    assert await settle(registry.materialize(())) == success("2")
    first.__exit__(None, None, None)
    assert await settle(registry.materialize(())) == success("2")
    second.__exit__(None, None, None)
    assert advertised(registry) == []


async def test_the_same_tool_registered_twice_counts_twice() -> None:
    registry, tool = ToolRegistry(), make()
    with registry.register(tool):
        with registry.register(tool):
            pass
        assert advertised(registry) == ["say"]


async def test_tools_of_the_application_lie_below_those_of_the_location() -> None:
    application = ToolRegistry()
    registry = ToolRegistry(application=application)
    with application.register(make(reply="app")), application.register(make("other")):
        assert await settle(registry.materialize(())) == success("app")
        with registry.register(make(reply="here")):
            assert await settle(registry.materialize(())) == success("here")
            assert advertised(registry) == ["other", "say"]
        assert await settle(registry.materialize(())) == success("app")


def test_the_tools_of_a_turn_are_made_once_until_a_registration_changes() -> None:
    application = ToolRegistry()
    registry = ToolRegistry(application=application)
    rules = (Rule(action="x", resource="*", effect="deny"),)
    with registry.register(make()):
        first = registry.materialize(rules)
        assert registry.materialize(rules) is first
        assert registry.materialize(()) is not first
        for changed in (registry, application):
            with changed.register(make("other")):
                assert [each.name for each in registry.materialize(rules).definitions] == [
                    "other",
                    "say",
                ]
            assert [each.name for each in registry.materialize(rules).definitions] == ["say"]


@requirement("S178")
def test_a_tool_is_left_out_only_when_the_last_rule_denies_it_everywhere() -> None:
    registry = ToolRegistry()
    with registry.register(make("edit")), registry.register(make("write", action="edit")):
        assert advertised(registry) == ["edit", "write"]
        assert advertised(registry, ("edit", "*", "deny")) == []
        assert advertised(registry, ("*", "*", "deny")) == []
        assert advertised(registry, ("write", "*", "deny")) == ["edit", "write"]
        assert advertised(registry, ("edit", "*.env", "deny")) == ["edit", "write"]
        assert len(advertised(registry, ("*", "*", "deny"), ("edit", "src/*", "allow"))) == 2
        assert advertised(registry, ("edit", "*", "allow"), ("e*", "*", "deny")) == []


@pytest.mark.parametrize("name", ["", "1a", "a b", "a" * 65, "a/b", "é", "a\n"])
def test_a_name_that_providers_refuse_is_refused_here(name: str) -> None:
    with pytest.raises(ToolRegistrationError):
        ToolRegistry().register(make(name))


def test_the_definition_is_one_plain_object_schema() -> None:
    registry = ToolRegistry()
    with registry.register(make()):
        (definition,) = registry.materialize(()).definitions
    item = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
    assert definition.input_schema == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to say."},
            "times": {"type": "integer", "minimum": 1},
            "items": {"type": "array", "items": item, "default": []},
        },
        "required": ["text"],
    }


def test_an_input_type_that_contains_itself_is_refused() -> None:
    async def execute(input: Nested, context: ToolCallContext) -> Nested:
        return input

    tool = Tool(name="n", description="", input=Nested, output=Nested, execute=execute)
    with pytest.raises(ToolRegistrationError, match="contains itself"):
        ToolRegistry().register(tool)


def success(said: str) -> ToolSuccess:
    return ToolSuccess({"said": said}, (TextContent(text=f"said {said}"),))
