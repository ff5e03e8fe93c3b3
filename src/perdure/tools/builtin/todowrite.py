"""todowrite: replace the Session's todo list.

The list becomes durable together with the call's success (runtime.turn.provider_turn), so that the
model and clients always see the same list.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from perdure.core import limits
from perdure.schema import codec
from perdure.schema.codec import Record
from perdure.schema.session.todo import Todo, Todos
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.environment import ToolEnvironment

DESCRIPTION: Final = """\
Write the list of what you mean to do in this session. It takes the place of the list before.

- Use it for work of several steps, so that you and the person see where it stands.
- Send every item each time, also those that are done; an item you leave out is gone.
- Have one item in progress at a time, and mark an item as completed as soon as it is."""


class TodoItem(Record, frozen=True):
    content: Annotated[str, Meta(description="What is to be done, in a few words.", min_length=1)]
    status: Annotated[
        str, Meta(description="pending, in_progress, completed or cancelled.", min_length=1)
    ]
    priority: Annotated[str, Meta(description="high, medium or low.", min_length=1)]


class TodoWriteInput(Record, frozen=True):
    todos: Annotated[
        tuple[TodoItem, ...],
        Meta(description="The whole list, in order.", max_length=limits.TODOS_MAX),
    ]


class TodoWriteOutput(Record, frozen=True):
    todos: Todos


def make_todowrite(environment: ToolEnvironment) -> Tool[TodoWriteInput, TodoWriteOutput]:
    async def execute(input: TodoWriteInput, context: ToolCallContext) -> TodoWriteOutput:
        if len(codec.encode(input)) > limits.TODOS_BYTES_MAX:
            raise ToolFailure(f"The list is larger than {limits.TODOS_BYTES_MAX} bytes")
        await environment.require(context, "todowrite", ("*",), save=("*",))
        return TodoWriteOutput(
            tuple(
                Todo(content=item.content, status=item.status, priority=item.priority)
                for item in input.todos
            )
        )

    return Tool(
        name="todowrite",
        effect="idempotent",
        asks_first=True,
        description=DESCRIPTION,
        input=TodoWriteInput,
        output=TodoWriteOutput,
        execute=execute,
        to_model_output=_content,
        todos=lambda output: output.todos,
    )


def _content(output: TodoWriteOutput) -> tuple[ToolContent, ...]:
    return (TextContent(text=msgspec.json.format(codec.encode(output.todos), indent=2).decode()),)
