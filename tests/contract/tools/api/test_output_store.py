"""Managed Tool Output Files and the bounded output in front of them."""

import logging
import os
import stat

import pytest

from perdure.core.limits import TOOL_OUTPUT_RETENTION_SECONDS
from perdure.schema.session.tool import FileContent, TextContent, ToolContent
from perdure.tools.api.output_store import BoundedOutput, bound
from perdure.tools.api.registry import ToolSuccess
from tests.contract.tools.tool_bench import ToolBench, text_of
from tests.requirements import requirement

IMAGE = FileContent(uri="data:image/png;base64," + "A" * 100_000, mime="image/png")
LONG = "\n".join(f"line {number}" for number in range(5_000))


async def bounded(bench: ToolBench, *content: ToolContent, **structured: object) -> BoundedOutput:
    return await bound(ToolSuccess(dict(structured), content), bench.store, bench.limits)


def preview_of(output: BoundedOutput) -> str:
    return text_of(ToolSuccess(output.structured, output.content))


@requirement("S96", "S106")
async def test_output_within_the_limits_is_left_alone(bench: ToolBench) -> None:
    output = await bounded(bench, TextContent(text="short"), IMAGE, a=1)
    assert output == BoundedOutput({"a": 1}, (TextContent(text="short"), IMAGE), ())
    assert list(bench.outputs.iterdir()) == []


@requirement("S16", "S96", "S98", "S99", "S105")
async def test_long_text_is_kept_whole_in_a_private_file_that_the_preview_names(
    bench: ToolBench,
) -> None:
    output = await bounded(bench, TextContent(text=LONG), IMAGE, TextContent(text="!"), a=1)
    (path,) = output.output_paths
    (kept,) = bench.outputs.iterdir()
    assert path == str(kept)
    assert kept.name.startswith("tool_")
    assert kept.read_text() == LONG + "!"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    preview = preview_of(output)
    assert preview.startswith("line 0\n")
    assert preview.endswith("line 4999!")
    assert path in preview
    assert output.content[1:] == (IMAGE,)
    assert output.structured == {"a": 1}


@requirement("S103")
async def test_a_long_structured_result_stays_whole_beside_its_preview(bench: ToolBench) -> None:
    rows = list(range(5_000))
    output = await bounded(bench, rows=rows)
    assert output.structured == {"rows": rows}
    assert preview_of(output).startswith('{\n  "rows": [\n    0,')
    assert len(output.output_paths) == 1


@requirement("S101")
async def test_a_full_disk_costs_the_file_and_not_the_result(
    bench: ToolBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.outputs.rmdir()
    bench.outputs.write_text("in the way")
    with caplog.at_level(logging.WARNING):
        output = await bounded(bench, TextContent(text=LONG))
    assert output.output_paths == ()
    assert "not kept" in preview_of(output)
    assert "tool output not kept" in caplog.text


@requirement("S104")
async def test_files_that_a_tool_made_itself_survive(bench: ToolBench) -> None:
    success = ToolSuccess({}, (TextContent(text=LONG),), ("/own/file",))
    output = await bound(success, bench.store, bench.limits)
    assert output.output_paths[0] == "/own/file"
    assert len(output.output_paths) == 2


@requirement("S100")
async def test_old_files_are_swept_and_nothing_else(bench: ToolBench) -> None:
    now = bench.clock.now_millis() / 1_000
    ages = {"tool_old": 1, "tool_new": -1, "notes": 1_000}
    for name, beyond in ages.items():
        (bench.outputs / name).touch()
        written = now - TOOL_OUTPUT_RETENTION_SECONDS - beyond
        os.utime(bench.outputs / name, (written, written))
    (bench.outputs / "tool_directory").mkdir()
    assert await bench.store.sweep() == 1
    left = sorted(path.name for path in bench.outputs.iterdir())
    assert left == ["notes", "tool_directory", "tool_new"]


async def test_sweeping_before_anything_was_kept_does_nothing(bench: ToolBench) -> None:
    bench.outputs.rmdir()
    assert await bench.store.sweep() == 0


@requirement("S105")
async def test_a_kept_file_can_be_read_and_searched_without_approval(bench: ToolBench) -> None:
    path = await bench.store.keep(LONG)
    page = await bench.structured("read", path=path, offset=4_999)
    assert page["content"] == "line 4998\nline 4999"
    found = await bench.structured("grep", pattern="line 4321$", path=path)
    assert [match["line"] for match in found["matches"]] == [4_322]
    assert [ask.action for ask in bench.desk.asked] == ["grep"]


@requirement("S105")
async def test_other_files_beside_the_kept_ones_and_writing_them_need_approval(
    bench: ToolBench,
) -> None:
    (bench.outputs / "other").write_text("x")
    path = await bench.store.keep("text")
    await bench.call("read", path=str(bench.outputs / "other"))
    await bench.call("write", path=path, content="y")
    asked = ["external_directory", "read", "external_directory", "edit"]
    assert [ask.action for ask in bench.desk.asked] == asked
