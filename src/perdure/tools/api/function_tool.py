"""Tools from plain functions: the signature is the input, the docstring what the model reads.

A function that cannot be described to a model is refused when the tool is made. `function_input`
describes and checks the parameters, `function_output` turns the return value into a result. Whether
an agent may call the tool is a permission rule for its name; the function asks for none.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Generic, ParamSpec, TypeVar, overload

from msgspec.structs import replace

from perdure.schema.codec import JsonObject, JsonValue, Record
from perdure.schema.session.tool import ToolContent
from perdure.tools.api.function_input import FunctionInput, describe_input
from perdure.tools.api.function_output import content_of, structured_of
from perdure.tools.api.registry import ToolRegistrationError
from perdure.tools.api.tool import Progress, Tool, ToolCallContext, ToolEffect

P = ParamSpec("P")
R = TypeVar("R")


class FunctionOutput(Record):
    structured: JsonObject
    content: tuple[ToolContent, ...]


class FunctionTool(Tool[Record, FunctionOutput], Generic[P, R], kw_only=True):
    """A tool that was made of a function, and can still be called as that function."""

    function: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


@overload
def tool(
    function: Callable[P, R],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    action: str | None = None,
    effect: ToolEffect = "once",
) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    action: str | None = None,
    effect: ToolEffect = "once",
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    action: str | None = None,
    effect: ToolEffect = "once",
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a typed function; without a function, give the decorator that does.

    ```python
    @perdure.tool
    async def weather(
        city: Annotated[str, "Where, as people call it."],
        days: Annotated[int, Meta(ge=1, le=7)] = 1,
        unit: Literal["celsius", "fahrenheit"] = "celsius",
        *,
        context: perdure.ToolCallContext,
    ) -> str:
        "Tell the weather of a city for the coming days."
        context.progress(f"looking at {city}")
        return f"{city}: 21 degrees {unit} for {days} days"
    ```

    Offer it with `host.tools.register(weather)`, or with `host.tool(weather)` in a plugin. A
    parameter of type ToolCallContext gets the context of the call; the model does not see it. A
    function that is not async runs in a thread. It may return a text, the bytes of an image, or a
    JSON value. It raises ToolFailure for what the model can act on. `action` is the permission that
    governs the tool, if it is not its name. `effect` says what a second execution would do: a call
    that a crash cut is run again if it is `pure` or `idempotent`, and never if it is `once`. Raises
    ToolRegistrationError for a function that cannot be described.
    """
    if function is None:
        return lambda function: tool(
            function, name=name, description=description, action=action, effect=effect
        )
    made = _make_tool(function, name, description)
    return replace(made, action=action, effect=effect)


def _make_tool(
    function: Callable[P, R], name: str | None, description: str | None
) -> FunctionTool[P, R]:
    named: str = name or getattr(function, "__name__", "")
    described = description or inspect.getdoc(function)
    if not described:
        raise ToolRegistrationError(f"tool {named!r}: a docstring must say what it is for")
    parameters = describe_input(function, named)
    return FunctionTool(
        name=named,
        description=described,
        function=function,
        input=parameters.record,
        output=FunctionOutput,
        execute=_execute(function, parameters),
        to_model_output=lambda output: output.content,
        structured=lambda output: output.structured,
    )


def _execute(
    function: Callable[..., JsonValue], parameters: FunctionInput
) -> Callable[[Record, ToolCallContext], Awaitable[FunctionOutput]]:
    is_async = inspect.iscoroutinefunction(function)

    async def execute(given: Record, context: ToolCallContext) -> FunctionOutput:
        if is_async:
            returned = await function(**parameters.arguments(given, context))
        else:
            arguments = parameters.arguments(given, _from_thread(context))
            returned = await asyncio.to_thread(function, **arguments)
        return FunctionOutput(structured_of(returned), content_of(returned))

    return execute


def _from_thread(context: ToolCallContext) -> ToolCallContext:
    """The same context, for a function that runs in a thread."""
    loop, report = asyncio.get_running_loop(), context.report

    def hand_over(progress: Progress) -> None:
        loop.call_soon_threadsafe(report, progress)

    return replace(context, report=hand_over)
