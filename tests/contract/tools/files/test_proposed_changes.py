"""A person who is asked about an edit sees what it would change."""

import pytest

from perdure.core.limits import PERMISSION_DIFF_CHARS_MAX
from perdure.ports import PermissionAsk
from perdure.schema.approval.permission import ProposedChange
from tests.contract.tools.tool_bench import ToolBench


async def changes_of(ask: PermissionAsk) -> tuple[ProposedChange, ...]:
    assert ask.changes is not None
    return await ask.changes()


def only_edit(bench: ToolBench) -> PermissionAsk:
    (ask,) = [ask for ask in bench.desk.asked if ask.action == "edit"]
    return ask


async def look_first(bench: ToolBench, tool: str, **input: object) -> tuple[ProposedChange, ...]:
    """What a person is shown before the tool acts."""
    seen: list[tuple[ProposedChange, ...]] = []
    bench.desk.look = lambda ask: seen_changes(ask, seen)
    await bench.success(tool, **input)
    return seen[-1]


async def seen_changes(ask: PermissionAsk, seen: list[tuple[ProposedChange, ...]]) -> None:
    if ask.changes is not None:
        seen.append(await ask.changes())


async def test_a_replaced_passage_is_shown_as_a_diff(bench: ToolBench) -> None:
    bench.write({"a.txt": "one\nold\nthree\n"})
    (change,) = await look_first(bench, "edit", path="a.txt", oldString="old", newString="new")
    assert (change.path, change.status) == ("a.txt", "modified")
    assert (change.additions, change.deletions) == (1, 1)
    assert "-old\n+new\n" in change.patch
    assert "\n one\n" in change.patch


async def test_a_new_file_is_shown_whole(bench: ToolBench) -> None:
    (change,) = await look_first(bench, "write", path="new.txt", content="a\nb\n")
    assert (change.status, change.additions, change.deletions) == ("added", 2, 0)
    assert change.patch.endswith("+a\n+b\n")


async def test_a_file_that_is_written_anew_is_shown_with_what_it_held(bench: ToolBench) -> None:
    bench.write({"a.txt": "old\n"})
    await bench.success("read", path="a.txt")
    (change,) = await look_first(bench, "write", path="a.txt", content="new\n")
    assert change.status == "modified"
    assert "-old\n+new\n" in change.patch


async def test_a_patch_of_several_files_is_shown_file_by_file(bench: ToolBench) -> None:
    bench.write({"a.txt": "old\n", "gone.txt": "gone\n"})
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n"
        "*** Add File: b.txt\n+more\n*** Delete File: gone.txt\n*** End Patch"
    )
    changes = await look_first(bench, "apply_patch", patchText=patch)
    assert {change.path: change.status for change in changes} == {
        "a.txt": "modified",
        "b.txt": "added",
        "gone.txt": "deleted",
    }


async def test_an_edit_that_cannot_be_made_tells_the_person_nothing_wrong(
    bench: ToolBench,
) -> None:
    bench.write({"a.txt": "one\n"})
    await bench.error("edit", path="a.txt", oldString="absent", newString="x")
    assert await changes_of(only_edit(bench)) == ()


async def test_long_diffs_are_cut_together_and_say_so(bench: ToolBench) -> None:
    lines = "".join(f"line {n} of many\n" for n in range(3_000))
    (change,) = await look_first(bench, "write", path="a.txt", content=lines)
    assert len(change.patch) < PERMISSION_DIFF_CHARS_MAX + 100
    assert change.patch.endswith("more characters)") or "too large to show" in change.patch


@pytest.mark.parametrize("tool", ["edit", "apply_patch"])
async def test_what_changed_after_the_person_saw_the_diff_is_not_overwritten(
    bench: ToolBench, tool: str
) -> None:
    bench.write({"a.txt": "old\n"})
    path = bench.root / "a.txt"

    async def look_and_change(ask: PermissionAsk) -> None:
        if ask.changes is not None:
            await ask.changes()
            path.write_text("old\nof another\n")

    bench.desk.look = look_and_change
    if tool == "edit":
        message = await bench.error("edit", path="a.txt", oldString="old", newString="new")
    else:
        patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n*** End Patch"
        message = await bench.error("apply_patch", patchText=patch)
    assert "has changed since" in message
    assert path.read_text() == "old\nof another\n"
