"""Tools from plain functions: the signature is the input, the docstring what the model reads.

What cannot be described to a model is refused when the tool is made. What a parameter's type means
is tools.api.function_input, and what a returned value becomes tools.api.function_output. Permission
to use such a tool is a rule for its name; the function itself asks nobody.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import overload

from msgspec.structs import replace

from perdure.schema.codec import JsonObject, JsonValue, Record
from perdure.schema.session.tool import ToolContent
from perdure.tools.api.function_input import FunctionInput, described
from perdure.tools.api.function_output import content_of, structured_of
from perdure.tools.api.registry import ToolRegistrationError
from perdure.tools.api.tool import Progress, Tool, ToolCallContext

Function = Callable[..., JsonValue]
"""Any function; what it takes and returns is looked at when it becomes a tool."""


class FunctionOutput(Record):
    structured: JsonObject
    content: tuple[ToolContent, ...]


AuthoredTool = Tool[Record, FunctionOutput]


@overload
def tool(
    function: Function,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    action: str | None = None,
) -> AuthoredTool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    action: str | None = None,
) -> Callable[[Function], AuthoredTool]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    action: str | None = None,
) -> AuthoredTool | Callable[[Function], AuthoredTool]:
    """The tool that `function` is; without a function, a decorator.

    ```python
    @tool
    async def weather(
        city: Annotated[str, "Where, as people call it."],
        days: Annotated[int, Meta(ge=1, le=7)] = 1,
        unit: Literal["celsius", "fahrenheit"] = "celsius",
        *,
        context: ToolCallContext,
    ) -> str:
        "Tell the weather of a city for the coming days."
        context.progress(f"looking at {city}")
        return f"{city}: 21 degrees {unit} for {days} days"
    ```

    Offer it with `perdure.tools.register(weather)`, or with `host.tool(weather)` in a plugin. A
    parameter of type ToolCallContext is given the context of the call; the model does not see it. A
    function that is not async runs in a thread. It may return a text, the bytes of an image, or
    anything that is JSON. ToolFailure is for what the model can act on. `action` is the permission
    that governs the tool, when it is not its name. Raises ToolRegistrationError for what cannot be
    described.
    """
    if function is None:
        return partial(tool, name=name, description=description, action=action)
    named = name or getattr(function, "__name__", "")
    told = description or inspect.getdoc(function) or ""
    if not told:
        raise ToolRegistrationError(f"tool {named!r}: a docstring must say what it is for")
    parameters = described(function, named)
    return Tool(
        name=named,
        description=told,
        input=parameters.record,
        output=FunctionOutput,
        execute=_execute(function, parameters),
        to_model_output=lambda output: output.content,
        structured=lambda output: output.structured,
        action=action,
    )


def _execute(
    function: Function, parameters: FunctionInput
) -> Callable[[Record, ToolCallContext], Awaitable[FunctionOutput]]:
    waits = inspect.iscoroutinefunction(function)

    async def execute(given: Record, context: ToolCallContext) -> FunctionOutput:
        if waits:
            returned = await function(**parameters.arguments(given, context))
        else:
            arguments = parameters.arguments(given, _from_thread(context))
            returned = await asyncio.to_thread(function, **arguments)
        return FunctionOutput(structured_of(returned), content_of(returned))

    return execute


def _from_thread(context: ToolCallContext) -> ToolCallContext:
    """The same context, for a function that is not on the loop."""
    loop, report = asyncio.get_running_loop(), context.report

    def hand_over(progress: Progress) -> None:
        loop.call_soon_threadsafe(report, progress)

    return replace(context, report=hand_over)
