"""Tools from plain functions: described by their signature, called with what the model sent."""

import ast
import asyncio
import enum
import inspect
import subprocess
import sys
import threading
from dataclasses import dataclass, field, make_dataclass
from importlib import import_module
from typing import Annotated, Literal, TypedDict, cast

import msgspec
import pytest
from msgspec import Meta

import perdure
from perdure import Tool, ToolCallContext, ToolFailure, ToolRegistrationError, tool
from perdure.core import limits
from perdure.schema.codec import JsonObject, JsonValue, Record
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session.tool import FileContent, TextContent
from perdure.tools.api.function_tool import FunctionOutput
from perdure.tools.api.registry import Settled, ToolError, ToolRegistry, ToolSuccess
from perdure.tools.api.tool import Progress
from tests.requirements import requirement

NOTHING_YET: list[str] = []
PNG = b"\x89PNG\r\n\x1a\n" + bytes(16)


def context(heard: list[Progress] | None = None) -> ToolCallContext:
    return ToolCallContext(
        session_id=SessionID("ses_test"),
        agent="build",
        assistant_message_id=MessageID("msg_test"),
        call_id=ToolCallID("call_1"),
        report=([] if heard is None else heard).append,
    )


Authored = Tool[Record, FunctionOutput]


async def call(made: Authored, /, **input: JsonValue) -> Settled:
    registry = ToolRegistry()
    with registry.register(made):
        return await registry.materialize(()).settle(made.name, dict(input), context())


async def success(made: Authored, /, **input: JsonValue) -> ToolSuccess:
    settled = await call(made, **input)
    assert isinstance(settled, ToolSuccess), settled
    return settled


async def error(made: Authored, /, **input: JsonValue) -> str:
    settled = await call(made, **input)
    assert isinstance(settled, ToolError), settled
    return settled.message


def schema(made: Authored) -> JsonObject:
    registry = ToolRegistry()
    with registry.register(made):
        return registry.materialize(()).definitions[0].input_schema


# ---- what the model is told ---------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Size(TypedDict):
    width: int


class Pen(msgspec.Struct):
    strokes: list[int]


@tool
async def draw(
    file_name: Annotated[str, "Where to."],
    at: Point,
    pen: Pen,
    size: Size,
    colour: Colour = Colour.RED,
    style: Literal["line", "dots"] = "line",
    times: Annotated[int, Meta(ge=1), "How often."] = 1,
    notes: list[str] = NOTHING_YET,
    scale: float | None = None,
) -> JsonObject:
    """Draw something.

    It is drawn at once.
    """
    return {
        "name": file_name,
        "at": [at.x, at.y],
        "strokes": pen.strokes,
        "width": size["width"],
        "colour": colour.value,
        "rest": [style, times, notes, scale],
    }


@requirement("S166")
def test_the_signature_and_the_docstring_describe_the_tool() -> None:
    assert (draw.name, draw.description) == ("draw", "Draw something.\n\nIt is drawn at once.")
    told = schema(draw)
    assert told["required"] == ["file_name", "at", "pen", "size"]
    properties = told["properties"]
    assert properties["file_name"] == {"type": "string", "description": "Where to."}
    assert properties["at"]["required"] == ["x"]
    assert properties["pen"]["properties"]["strokes"]["items"] == {"type": "integer"}
    assert properties["size"]["properties"] == {"width": {"type": "integer"}}
    assert properties["colour"] == {"enum": ["blue", "red"]}
    assert properties["style"] == {"enum": ["dots", "line"], "default": "line"}
    assert (properties["times"]["minimum"], properties["times"]["description"]) == (1, "How often.")
    assert "$ref" not in str(told)


@requirement("S166")
async def test_a_call_gets_values_of_the_declared_types_and_the_defaults() -> None:
    sent = {"file_name": "a", "at": {"x": 1}, "pen": {"strokes": [1]}, "size": {"width": 3}}
    done = await success(draw, **sent, scale=None)
    assert done.structured == {
        "name": "a",
        "at": [1, 0],
        "strokes": [1],
        "width": 3,
        "colour": "red",
        "rest": ["line", 1, [], None],
    }
    assert done.content == ()
    again = await success(draw, **sent, colour="blue", times=2, notes=["x"], scale=0.5)
    assert again.structured["rest"] == ["line", 2, ["x"], 0.5]


@requirement("S166")
@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"file_name": 3}, "file_name"),
        ({"colour": "green"}, "green"),
        ({"times": 0}, "times"),
        ({"at": {}}, "x"),
        ({"size": None}, "size"),
    ],
)
async def test_input_that_does_not_fit_is_explained_and_the_function_not_called(
    wrong: JsonObject, named: str
) -> None:
    fits: JsonObject = {
        "file_name": "a",
        "at": {"x": 1},
        "pen": {"strokes": []},
        "size": {"width": 3},
    }
    message = await error(draw, **{**fits, **wrong})
    assert message.startswith("Invalid tool input: ")
    assert named in message


async def test_a_default_that_can_change_is_not_shared_between_calls() -> None:
    def remember(word: str, words: list[str] = NOTHING_YET) -> list[str]:
        """Remember a word."""
        words.append(word)
        return words

    made = tool(remember)
    assert (await success(made, word="one")).structured == {"result": ["one"]}
    assert (await success(made, word="two")).structured == {"result": ["two"]}
    assert NOTHING_YET == []


async def test_the_context_is_given_to_whoever_asks_and_never_shown() -> None:
    @tool(name="who_calls", description="Say who calls.", action="who")
    async def who(context: ToolCallContext) -> str:
        return f"{context.agent} in {context.session_id}"

    assert (who.name, who.description, who.permission_action) == (
        "who_calls",
        "Say who calls.",
        "who",
    )
    assert schema(who)["properties"] == {}
    done = await success(who)
    assert done.content == (TextContent(text="build in ses_test"),)


async def test_the_example_of_the_documentation_works() -> None:
    documentation = inspect.getdoc(tool)
    assert documentation is not None
    example = documentation.partition("```python\n")[2].partition("```")[0]
    names: dict[str, object] = {
        "perdure": perdure,
        "Annotated": Annotated,
        "Meta": Meta,
        "Literal": Literal,
    }
    exec(compile(ast.parse(example), "example", "exec"), names)
    weather = cast("Authored", names["weather"])
    done = await success(weather, city="Bern", days=2)
    assert done.content == (TextContent(text="Bern: 21 degrees celsius for 2 days"),)
    assert "days" in await error(weather, city="Bern", days=9)


# ---- what a function may return -----------------------------------------------------------------


@dataclass
class Answer:
    number: int
    words: list[str] = field(default_factory=list[str])


class Told(Record):
    session_id: str


@pytest.mark.parametrize(
    ("returned", "structured"),
    [
        ({"a": [1, None]}, {"a": [1, None]}),
        (Answer(3), {"number": 3, "words": []}),
        (Told("x"), {"sessionID": "x"}),
        ([1, 2], {"result": [1, 2]}),
        (7, {"result": 7}),
        (True, {"result": True}),
    ],
)
async def test_what_is_json_is_the_structured_result(
    returned: object, structured: JsonObject
) -> None:
    def answer() -> object:
        """Answer."""
        return returned

    done = await success(tool(answer))
    assert (done.structured, done.content) == (structured, ())


async def test_an_image_is_shown_as_one() -> None:
    def paint() -> bytes:
        """Paint."""
        return PNG

    done = await success(tool(paint))
    (part,) = done.content
    assert isinstance(part, FileContent)
    assert (part.mime, part.uri[:22]) == ("image/png", "data:image/png;base64,")


async def test_nothing_is_a_result_as_well() -> None:
    def nothing() -> None:
        """Do nothing."""

    assert (await success(tool(nothing))).content == (TextContent(text="Done."),)


@pytest.mark.parametrize(
    "returned",
    [b"no image", PNG + bytes(limits.IMAGE_BASE64_BYTES_MAX), object(), {"a": object()}, {1j: 2}],
)
async def test_what_cannot_be_a_result_is_told_to_the_model(returned: object) -> None:
    def answer() -> object:
        """Answer."""
        return returned

    assert (await error(tool(answer))).startswith("The tool returned ")


async def test_a_failure_is_for_the_model_and_a_defect_is_not() -> None:
    @tool
    async def fail(*, badly: bool) -> str:
        """Fail."""
        if badly:
            raise KeyError("a defect")
        raise ToolFailure("try tomorrow")

    assert await error(fail, badly=False) == "try tomorrow"
    with pytest.raises(KeyError):
        await call(fail, badly=True)


# ---- functions that wait ------------------------------------------------------------------------


async def test_a_function_that_is_not_async_runs_beside_the_loop_and_tells_how_far_it_is() -> None:
    told = asyncio.Event()
    go_on = threading.Event()
    heard: list[Progress] = []

    def report(progress: Progress) -> None:
        heard.append(progress)
        told.set()

    @tool
    def slow(context: ToolCallContext) -> str:
        """Be slow."""
        context.progress("half", structured={"done": 1})
        assert go_on.wait(5)
        return f"not {threading.main_thread().ident == threading.get_ident()}"

    registry = ToolRegistry()
    calling = ToolCallContext(
        session_id=SessionID("ses_test"),
        agent="build",
        assistant_message_id=MessageID("msg_test"),
        call_id=ToolCallID("call_1"),
        report=report,
    )
    with registry.register(slow):
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            running = group.create_task(registry.materialize(()).settle("slow", {}, calling))
            await told.wait()
            go_on.set()
    done = running.result()
    assert isinstance(done, ToolSuccess)
    assert done.content == (TextContent(text="not False"),)
    assert heard == [Progress({"done": 1}, (TextContent(text="half"),))]


# ---- what cannot be a tool ----------------------------------------------------------------------


def untyped(city: str) -> None:
    """Has no type."""


# As an author who does not annotate would have written it.
del untyped.__annotations__["city"]


def many(*cities: str) -> None:
    """Takes any number."""


def named(**cities: str) -> None:
    """Takes any name."""


def by_place(city: str, /) -> None:
    """Takes it by its place."""


def unknown(city: str) -> None:
    """Names no type."""


unknown.__annotations__["city"] = "Nowhere"


def undescribed(city: str) -> None:
    pass


def indescribable(city: threading.Lock) -> None:
    """Takes what is not JSON."""


@dataclass
class Tree:
    children: "list[Tree]"


def endless(tree: Tree) -> None:
    """Takes a tree of any depth."""


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (untyped, "parameter 'city' needs a type"),
        (many, "parameter 'cities' must have a name of its own"),
        (named, "parameter 'cities' must have a name of its own"),
        (by_place, "parameter 'city' must be callable by its name"),
        (unknown, "Nowhere"),
        (undescribed, "a docstring must say what it is for"),
        (indescribable, "indescribable"),
        (endless, "contains itself"),
    ],
)
def test_what_cannot_be_described_is_refused_with_the_reason(
    function: JsonValue, reason: str
) -> None:
    with pytest.raises(ToolRegistrationError, match=reason) as caught:
        tool(function)
    assert function.__name__ in str(caught.value)


def test_a_name_that_no_model_may_use_is_refused_when_it_is_registered() -> None:
    with (
        pytest.raises(ToolRegistrationError, match="invalid tool name"),
        ToolRegistry().register(tool(lambda: "x", description="No name.")),
    ):
        pass


def test_pydantic_is_not_loaded_by_us() -> None:
    code = "import sys, perdure; perdure.tool; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_a_pydantic_model_is_described_and_checked_by_pydantic() -> None:
    pydantic = import_module("pydantic")
    city = pydantic.create_model("City", title=(str, ...), people=(int, pydantic.Field(ge=0)))

    def count(where: JsonValue, others: JsonValue = None) -> JsonValue:
        """Count people."""
        return where

    count.__annotations__ = {"where": Annotated[city, "Which."], "others": list[city] | None}
    made = tool(count)
    told = schema(made)["properties"]["where"]
    assert (told["description"], told["required"]) == ("Which.", ["title", "people"])
    assert told["properties"]["title"] == {"type": "string"}
    done = await success(made, where={"title": "Bern", "people": 3})
    assert done.structured == {"title": "Bern", "people": 3}
    assert (await error(made, where={"title": "Bern", "people": -1})).startswith(
        "Invalid tool input: where: "
    )


async def test_pydantic_is_asked_wherever_its_types_appear() -> None:
    pydantic = import_module("pydantic")
    city = pydantic.create_model("City", people=(int, ...))

    @pydantic.dataclasses.dataclass
    class Road:
        lanes: int

    trip = make_dataclass("Trip", [("to", city), ("days", int, 1)])

    def travel(trip: object, road: object, cars: int = 1) -> JsonObject:
        """Travel."""
        plain = cast("JsonValue", trip)
        return {"people": plain.to.people, "kind": type(road).__name__, "cars": cars}

    limited = Annotated[int, pydantic.Field(ge=1, le=3, description="How many.")]
    travel.__annotations__ = {"trip": trip, "road": Road, "cars": limited}
    made = tool(travel)
    told = schema(made)["properties"]
    assert told["trip"]["properties"]["to"]["required"] == ["people"]
    assert told["cars"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 3,
        "description": "How many.",
        "default": 1,
    }
    done = await success(made, trip={"to": {"people": 3}}, road={"lanes": 2}, cars=2)
    assert done.structured == {"people": 3, "kind": "Road", "cars": 2}
    failed = await error(made, trip={"to": {"people": 3}}, road={"lanes": 2}, cars=9)
    assert failed.startswith("Invalid tool input: cars: ")


def test_a_type_that_pydantic_cannot_describe_is_refused_with_its_reason() -> None:
    pydantic = import_module("pydantic")
    city = pydantic.create_model("City", people=(int, ...))
    opaque = type("Opaque", (), {})

    def travel(trip: object) -> str:
        """Travel."""
        return str(trip)

    travel.__annotations__ = {"trip": dict[str, city | opaque]}
    with pytest.raises(ToolRegistrationError, match=r"'travel': parameter 'trip' cannot be desc"):
        tool(travel)


async def test_a_tool_can_still_be_called_as_its_function() -> None:
    @tool
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    @tool(name="third", action="read")
    async def divide(number: float, *, by: float = 3) -> float:
        """Divide a number."""
        return number / by

    assert double(4) + 1 == 9
    assert await divide(6, by=2) == 3
    assert (divide.name, divide.permission_action, double.name) == ("third", "read", "double")
