"""todowrite: the list is taken whole, within bounds, and with permission."""

import pytest

from perdure.core import limits
from perdure.ports import PermissionBlockedError
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.session.todo import Todo
from tests.contract.tools.tool_bench import ToolBench, text_of
from tests.requirements import requirement


def item(content: str = "write it", status: str = "pending") -> JsonObject:
    return {"content": content, "status": status, "priority": "high"}


@requirement("S178", "S182")
async def test_the_list_is_shown_to_the_model_and_handed_on(bench: ToolBench) -> None:
    given = [item("write it", "in_progress"), item("test it")]
    written = await bench.success("todowrite", todos=given)
    assert written.structured == {"todos": given}
    assert codec.decode_any(text_of(written)) == given
    assert written.todos == (
        Todo(content="write it", status="in_progress", priority="high"),
        Todo(content="test it", status="pending", priority="high"),
    )
    assert bench.desk.questions() == [("todowrite", ("*",))]
    assert bench.desk.asked[0].save == ("*",)


async def test_an_empty_list_is_a_list(bench: ToolBench) -> None:
    assert (await bench.success("todowrite", todos=[])).todos == ()


@pytest.mark.parametrize(
    "todos",
    [
        None,
        "later",
        [{"content": "no status", "priority": "low"}],
        [item("")],
        [item("x", "")],
        [item()] * (limits.TODOS_MAX + 1),
        [item("x" * limits.TODOS_BYTES_MAX)],
    ],
)
async def test_a_list_that_cannot_be_is_explained_and_asks_nobody(
    bench: ToolBench, todos: JsonValue
) -> None:
    assert await bench.error("todowrite", todos=todos)
    assert bench.desk.asked == []


@requirement("S178")
async def test_one_who_may_not_write_the_list_does_not(bench: ToolBench) -> None:
    bench.desk.answers["todowrite"] = PermissionBlockedError("no lists here")
    assert await bench.error("todowrite", todos=[item()]) == "no lists here"
