"""A file is not overwritten by who has not seen it, nor by who has seen something else."""

import os

import pytest
from msgspec.structs import replace

from perdure.core.limits import EDIT_FILE_BYTES_MAX, READ_BYTES_MAX, SEEN_FILES_MAX
from perdure.schema.codec import JsonValue
from perdure.schema.ids import SessionID
from perdure.tools.api.registry import Settled, ToolError
from perdure.tools.files.mutation import FileMutations
from perdure.tools.files.read_tracking import ReadTracker
from tests.contract.tools.tool_bench import CONTEXT, ToolBench
from tests.requirements import requirement

OTHER = replace(CONTEXT, session_id=SessionID("ses_other"))


async def elsewhere(bench: ToolBench, name: str, /, **input: JsonValue) -> Settled:
    """The same call in another Session."""
    return await bench.registry.materialize(()).settle(name, dict(input), OTHER)


def patch(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


async def test_an_existing_file_is_replaced_only_by_who_has_read_it(bench: ToolBench) -> None:
    bench.write({"f": "precious"})
    assert "read it before" in await bench.error("write", path="f", content="x")
    await elsewhere(bench, "read", path="f")
    assert "read it before" in await bench.error("write", path="f", content="x")
    await bench.success("read", path="f")
    await bench.success("write", path="f", content="x")
    await bench.success("write", path="f", content="y")
    assert (bench.root / "f").read_text() == "y"


async def test_an_empty_file_may_be_filled_unseen(bench: ToolBench) -> None:
    bench.write({"f": ""})
    await bench.success("write", path="f", content="x")
    assert (bench.root / "f").read_text() == "x"


@requirement("S186")
@pytest.mark.parametrize(
    ("name", "input"),
    [
        ("write", {"path": "f", "content": "new\n"}),
        ("edit", {"path": "f", "oldString": "old", "newString": "new"}),
        ("apply_patch", {"patchText": patch("*** Update File: f", "@@", "-old", "+new")}),
        ("apply_patch", {"patchText": patch("*** Delete File: f")}),
        ("apply_patch", {"patchText": patch("*** Update File: f", "*** Move to: g")}),
    ],
)
async def test_a_file_that_changed_since_it_was_read_is_left_alone_until_it_is_read_again(
    bench: ToolBench, name: str, input: dict[str, JsonValue]
) -> None:
    bench.write({"f": "old\n"})
    await bench.success("read", path="f")
    bench.write({"f": "old\nand by hand\n"})
    assert "read it again" in await bench.error(name, **input)
    assert (bench.root / "f").read_text() == "old\nand by hand\n"
    await bench.success("read", path="f")
    await bench.success(name, **input)


async def test_what_another_session_changed_must_be_read_again(bench: ToolBench) -> None:
    bench.write({"f": "one two"})
    await bench.success("read", path="f")
    await elsewhere(bench, "edit", path="f", oldString="one", newString="1")
    assert "read it again" in await bench.error("edit", path="f", oldString="two", newString="2")
    assert (bench.root / "f").read_text() == "1 two"


@pytest.mark.parametrize(
    ("name", "input"),
    [
        ("edit", {"path": "f", "oldString": "old", "newString": "new"}),
        ("apply_patch", {"patchText": patch("*** Update File: f", "@@", "-old", "+new")}),
    ],
)
async def test_who_names_what_is_replaced_need_not_be_remembered(
    bench: ToolBench, name: str, input: dict[str, JsonValue]
) -> None:
    """After a restart nothing is remembered, and edits go on."""
    bench.write({"f": "old\n"})
    await bench.success(name, **input)
    assert (bench.root / "f").read_text() == "new\n"


async def test_a_page_counts_as_reading_and_notices_changes_elsewhere_in_the_file(
    bench: ToolBench,
) -> None:
    lines = ["x" * 60 for _ in range(READ_BYTES_MAX // 30)]
    bench.write({"f": "\n".join([*lines, "end"])})
    await bench.success("read", path="f", limit=3)
    await bench.success("edit", path="f", oldString="end", newString="END")
    bench.write({"f": "\n".join([*lines, "other"])})
    assert "read it again" in await bench.error("edit", path="f", oldString="other", newString="o")


async def test_a_file_too_large_to_be_edited_is_known_by_its_size_and_time(
    bench: ToolBench,
) -> None:
    with (bench.root / "log").open("wb") as file:
        file.write(b"line\n" * (EDIT_FILE_BYTES_MAX // 5 + 1))
    await bench.success("read", path="log", limit=1)
    os.utime(bench.root / "log", ns=(1, 1))
    assert "read it again" in await bench.error("write", path="log", content="")
    await bench.success("read", path="log", limit=1)
    await bench.success("write", path="log", content="")


async def test_touching_a_file_is_not_changing_it(bench: ToolBench) -> None:
    bench.write({"f": "same"})
    await bench.success("read", path="f")
    os.utime(bench.root / "f", ns=(1, 1))
    await bench.success("write", path="f", content="new")


async def test_a_moved_file_is_known_at_its_new_place_and_not_at_the_old(
    bench: ToolBench,
) -> None:
    bench.write({"a": "x\n"})
    await bench.success("read", path="a")
    await bench.success(
        "apply_patch", patchText=patch("*** Update File: a", "*** Move to: b", "@@", "-x", "+y")
    )
    await bench.success("write", path="b", content="z")
    bench.write({"a": "somebody else's"})
    assert "read it before" in await bench.error("write", path="a", content="z")


def test_only_so_much_is_remembered_and_the_latest_longest() -> None:
    seen, session = ReadTracker(), SessionID("ses_1")
    seen.note(session, "first", "1")
    for number in range(SEEN_FILES_MAX - 1):
        seen.note(session, f"f{number}", "1")
    seen.note(session, "first", "2")
    seen.note(session, "one more", "1")
    assert seen.version(session, "first") == "2"
    assert seen.version(session, "f0") is None


async def test_a_restart_forgets(bench: ToolBench) -> None:
    bench.write({"f": "x"})
    await bench.success("read", path="f")
    restarted = replace(bench.environment, mutations=FileMutations(bench.filesystem))
    bench.environment = restarted
    with bench.open():
        settled = await bench.call("write", path="f", content="y")
    assert isinstance(settled, ToolError)
    assert "read it before" in settled.message
