"""bash: commands, their ends, and what the model is told."""

import asyncio
import os
from time import perf_counter

import pytest

from perdure.core.limits import BASH_OUTPUT_BYTES_MAX
from perdure.ports import PermissionCorrectedError
from perdure.schema.tool import TextContent
from perdure.tools.output_store import bound
from tests.contract.tool.workbench import Workbench
from tests.requirements import requirement


@requirement("S178", "S180")
async def test_a_command_gives_its_output_and_exit_code(bench: Workbench) -> None:
    success = await bench.success("bash", command="echo out; echo err >&2", description="say")
    assert success.structured == {"exit": 0, "truncated": False}
    assert success.content == (
        TextContent(text="out\nerr\n"),
        TextContent(text="Command exited with code 0."),
    )
    (ask,) = bench.desk.asked
    command = ("echo out; echo err >&2",)
    assert (ask.action, ask.resources, ask.save) == ("bash", command, command)


@pytest.mark.parametrize(
    ("command", "code"), [("exit 3", 3), ("nosuchcommand", 127), ("kill -9 $$", 137)]
)
async def test_a_command_that_fails_is_a_result(bench: Workbench, command: str, code: int) -> None:
    assert (await bench.structured("bash", command=command))["exit"] == code


async def test_silence_is_said(bench: Workbench) -> None:
    assert (await bench.text("bash", command="true")).startswith("(no output)")


async def test_it_runs_in_the_location_or_in_the_given_directory(bench: Workbench) -> None:
    bench.write({"sub/f": ""})
    assert (await bench.text("bash", command="pwd")).startswith(f"{bench.root}\n")
    assert (await bench.text("bash", command="pwd", workdir="sub")).startswith(
        f"{bench.root}/sub\n"
    )
    assert "not a directory" in await bench.error("bash", command="pwd", workdir="sub/f")
    assert "no such file" in await bench.error("bash", command="pwd", workdir="gone")


@requirement("S181")
async def test_a_directory_outside_is_approved_before_the_command(bench: Workbench) -> None:
    await bench.success("bash", command="pwd", workdir=str(bench.outside))
    assert bench.desk.questions() == [
        ("external_directory", (f"{bench.outside}/*",)),
        ("bash", ("pwd",)),
    ]
    assert "outside the project" in await bench.error("bash", command="pwd", workdir="..")


@requirement("S181")
async def test_paths_outside_are_pointed_out_once_for_each_directory(bench: Workbench) -> None:
    inside = bench.root / "f"
    command = f": /etc/hosts '/etc/passwd' --file=/opt/x {inside} a/b http://c/d; : >/dev/null"
    text = await bench.text("bash", command=command)
    warned = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith("Warning")]
    assert warned[-1] == "/opt"
    assert "/etc" in text
    assert len(warned) + text.startswith("(no output)Warning") == 2


async def test_running_out_of_time_is_a_result_with_what_was_said(bench: Workbench) -> None:
    success = await bench.success("bash", command="echo began; sleep 60", timeout=300)
    assert success.structured == {"truncated": False, "timeout": True}
    assert success.content[0] == TextContent(text="began\n")


async def test_a_background_job_does_not_hold_the_answer(bench: Workbench) -> None:
    started = perf_counter()
    assert (await bench.text("bash", command="sleep 60 & echo on")).startswith("on\n")
    assert perf_counter() - started < 5


async def test_bytes_that_are_not_text_are_replaced(bench: Workbench) -> None:
    text = await bench.text("bash", command=r"printf 'a\377\000b'")
    assert text.startswith("a\ufffd\0b")


@requirement("S97", "S180")
async def test_output_beyond_the_capture_is_dropped_and_said(bench: Workbench) -> None:
    success = await bench.success("bash", command=f"head -c {BASH_OUTPUT_BYTES_MAX + 1} /dev/zero")
    assert success.structured["truncated"] is True
    first = success.content[0]
    assert isinstance(first, TextContent)
    assert "The rest was not kept" in first.text[-200:]


@requirement("S99")
async def test_a_result_that_will_be_cut_for_the_model_says_so(bench: Workbench) -> None:
    success = await bench.success("bash", command="seq 1 20000")
    assert success.structured == {"exit": 0, "truncated": True}
    output = await bound(success, bench.store, bench.limits)
    (part,) = output.content
    assert isinstance(part, TextContent)
    assert output.output_paths[0] in part.text
    assert part.text.endswith("20000\nCommand exited with code 0.")


async def test_a_persons_words_reach_the_model(bench: Workbench) -> None:
    bench.desk.answers["bash"] = PermissionCorrectedError("use make test")
    assert await bench.error("bash", command="pytest") == "use make test"


async def test_commands_that_cannot_start_are_refused(bench: Workbench) -> None:
    assert "NUL" in await bench.error("bash", command="a\0b")
    assert "Unable to execute" in await bench.error("bash", command="x" * 3_000_000)
    assert "Invalid tool input" in await bench.error("bash", command="")
    assert "Invalid tool input" in await bench.error("bash", command="x", timeout=600_001)


async def test_an_interrupted_command_is_gone(bench: Workbench) -> None:
    pipe = bench.root / "pid"
    os.mkfifo(pipe)
    async with asyncio.TaskGroup() as group:
        call = group.create_task(bench.call("bash", command="echo $$ > pid; exec sleep 60"))
        pid = int(await asyncio.to_thread(pipe.read_text))
        call.cancel()
    assert call.cancelled()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
