"""What a tool prints is bounded before it is stored; the rest is in a file that can be read."""

from pathlib import Path

import pytest

from perdure.core import limits
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

MANY_LINES = "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done"


async def run(api: Api, provider: ScriptedProvider, call: Call) -> JsonObject:
    """Let the model make one call; the state of that call afterwards."""
    provider.then(calls(call), text("seen"))
    session = await api.create()
    _, assistant, _ = await api.ask(session, "run it")
    return assistant["content"][0]["state"]


@requirement("S15", "S16", "S96", "S97", "S98", "S99", "S104")
async def test_long_output_keeps_its_head_and_tail_and_names_the_whole(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    state = await run(api, provider, Call("bash", {"command": MANY_LINES}))
    (shown,) = [item["text"] for item in state["content"]]
    (path,) = state["outputPaths"]
    assert shown.startswith("line 0\nline 1\n")
    assert "line 4999\n" in shown
    assert "line 2500\n" not in shown
    assert path in shown
    assert len(shown.splitlines()) <= limits.TOOL_OUTPUT_LINES_MAX
    assert len(shown.encode()) <= limits.TOOL_OUTPUT_BYTES_MAX
    assert Path(path).parent == folders.tool_output
    kept = Path(path).read_text()
    assert all(f"line {number}\n" in kept for number in (0, 2500, 4999))
    assert state["structured"]["exit"] == 0
    assert provider.requests[1].messages[-1]["content"] == shown


@requirement("S97")
async def test_one_line_that_is_far_too_long_is_bounded_by_bytes(
    api: Api, provider: ScriptedProvider
) -> None:
    command = "head -c 300000 /dev/zero | tr '\\0' x"
    state = await run(api, provider, Call("bash", {"command": command}))
    shown = state["content"][0]["text"]
    assert len(shown.encode()) <= limits.TOOL_OUTPUT_BYTES_MAX
    assert Path(state["outputPaths"][0]).stat().st_size >= 300_000


@requirement("S105")
async def test_the_file_can_be_read_again_without_asking_anyone(
    api: Api, provider: ScriptedProvider
) -> None:
    state = await run(api, provider, Call("bash", {"command": MANY_LINES}))
    (path,) = state["outputPaths"]
    page = await run(api, provider, Call("read", {"path": path, "offset": 2500, "limit": 2}))
    assert page["status"] == "completed"
    assert "line 2499\nline 2500" in page["structured"]["content"]
    found = await run(api, provider, Call("grep", {"pattern": "line 3333$", "path": path}))
    assert found["status"] == "completed"


@requirement("S101")
@pytest.mark.parametrize("when", ["before the start", "while it runs"])
async def test_output_that_cannot_be_kept_is_still_a_success(
    folders: ProjectFolders, provider: ScriptedProvider, when: str
) -> None:
    if when == "before the start":
        folders.data.mkdir(mode=0o700)
        folders.tool_output.write_text("in the way")
    async with running(folders) as instance:
        if when == "while it runs":
            folders.tool_output.write_text("in the way")
        state = await run(instance.api, provider, Call("bash", {"command": MANY_LINES}))
    assert state["status"] == "completed"
    assert state["outputPaths"] == []
    shown = state["content"][0]["text"]
    assert "line 0\n" in shown
    assert "not kept" in shown


@requirement("S103")
async def test_a_large_structured_result_stays_whole_for_programs(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    wide = "\n".join(f"row {number}" for number in range(1_900))
    (folders.project / "wide.txt").write_text(wide + "é" * 18_000)
    state = await run(api, provider, Call("read", {"path": "wide.txt"}))
    assert state["status"] == "completed"
    assert state["structured"]["content"].startswith("row 0\n")
    told = provider.requests[1].messages[-1]["content"]
    assert len(told.encode()) <= limits.TOOL_OUTPUT_BYTES_MAX + 1_000


async def test_output_that_is_no_text_does_no_harm(api: Api, provider: ScriptedProvider) -> None:
    command = "printf '\\377\\376\\000\\033[31m'; exit 3"
    state = await run(api, provider, Call("bash", {"command": command}))
    assert state["status"] == "completed"
    assert state["structured"]["exit"] == 3


@requirement("S100")
async def test_the_bounded_output_outlives_its_file(
    api: Api, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    provider.then(calls(Call("bash", {"command": MANY_LINES})), text("seen"), text("still"))
    session = await api.create()
    before = await api.ask(session, "run it")
    for file in folders.tool_output.iterdir():
        file.unlink()
    after = await api.ask(session, "and now")
    assert after[: len(before)] == before
    assert provider.requests[2].messages[3] == provider.requests[1].messages[3]
