"""bash: commands, their ends, and what the model is told."""

import asyncio
import os
from pathlib import Path
from time import perf_counter

import pytest
from msgspec.structs import replace

from perdure.core.request.tool_output import OutputLimits
from perdure.ports import PermissionCorrectedError
from perdure.schema.codec import JsonObject
from perdure.schema.session.tool import TextContent
from perdure.tools.api.output_store import bound
from perdure.tools.api.tool import Progress, ToolCallContext
from tests.contract.tools.tool_bench import CONTEXT, ToolBench, text_of
from tests.requirements import requirement


@requirement("S178", "S180")
async def test_a_command_gives_its_output_and_exit_code(bench: ToolBench) -> None:
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
async def test_a_command_that_fails_is_a_result(bench: ToolBench, command: str, code: int) -> None:
    assert (await bench.structured("bash", command=command))["exit"] == code


async def test_silence_is_said(bench: ToolBench) -> None:
    assert (await bench.text("bash", command="true")).startswith("(no output)")


async def test_it_runs_in_the_location_or_in_the_given_directory(bench: ToolBench) -> None:
    bench.write({"sub/f": ""})
    assert (await bench.text("bash", command="pwd")).startswith(f"{bench.root}\n")
    assert (await bench.text("bash", command="pwd", workdir="sub")).startswith(
        f"{bench.root}/sub\n"
    )
    assert "not a directory" in await bench.error("bash", command="pwd", workdir="sub/f")
    assert "no such file" in await bench.error("bash", command="pwd", workdir="gone")


@requirement("S181")
async def test_a_directory_outside_is_approved_before_the_command(bench: ToolBench) -> None:
    await bench.success("bash", command="pwd", workdir=str(bench.outside))
    assert bench.desk.questions() == [
        ("external_directory", (f"{bench.outside}/*",)),
        ("bash", ("pwd",)),
    ]
    assert "outside the project" in await bench.error("bash", command="pwd", workdir="..")


@requirement("S181")
async def test_paths_outside_are_pointed_out_once_for_each_directory(bench: ToolBench) -> None:
    inside = bench.root / "f"
    command = f": /etc/hosts '/etc/passwd' --file=/opt/x {inside} a/b http://c/d; : >/dev/null"
    text = await bench.text("bash", command=command)
    warned = [line.rpartition(" ")[2] for line in text.splitlines() if line.startswith("Warning")]
    assert warned[-1] == "/opt"
    assert "/etc" in text
    assert len(warned) + text.startswith("(no output)Warning") == 2


async def test_running_out_of_time_is_a_result_with_what_was_said(bench: ToolBench) -> None:
    success = await bench.success("bash", command="echo began; sleep 60", timeout=300)
    assert success.structured == {"truncated": False, "timeout": True}
    assert success.content[0] == TextContent(text="began\n")


async def test_a_background_job_does_not_hold_the_answer(bench: ToolBench) -> None:
    started = perf_counter()
    assert (await bench.text("bash", command="sleep 60 & echo on")).startswith("on\n")
    assert perf_counter() - started < 5


async def test_bytes_that_are_not_text_are_replaced(bench: ToolBench) -> None:
    text = await bench.text("bash", command=r"printf 'a\377\000b'")
    assert text.startswith("a\ufffd\u2400b")


@requirement("S97", "S180")
async def test_output_too_long_to_hold_lies_in_a_file_and_both_ends_are_shown(
    bench: ToolBench,
) -> None:
    success = await bench.success(
        "bash", command="echo first; yes middle | head -n 300000; echo last"
    )
    assert success.structured == {"exit": 0, "truncated": True}
    (path,) = success.output_paths
    whole = Path(path).read_bytes()
    assert whole == b"first\n" + b"middle\n" * 300_000 + b"last\n"
    assert Path(path).stat().st_mode & 0o777 == 0o600
    text = text_of(success)
    assert text.startswith("first\n")
    assert f"300003 lines, {len(whole)} bytes in all. Full output: {path}" in text
    assert text.endswith("last\nCommand exited with code 0.")
    # It is within the bound already: the registry keeps no second copy.
    assert (await bound(success, bench.store, bench.limits)).output_paths == (path,)


@pytest.mark.parametrize("limits", [OutputLimits(lines_max=10), OutputLimits(bytes_max=400)])
async def test_a_long_output_is_shown_within_any_limit(
    tmp_path: Path, limits: OutputLimits
) -> None:
    bench = ToolBench(tmp_path)
    bench.environment = replace(bench.environment, output_limits=limits)
    with bench.open():
        success = await bench.success("bash", command="yes | head -n 1000000; cat /etc/hostname")
        assert (await bound(success, bench.store, limits)).output_paths == success.output_paths


async def test_a_disk_that_takes_no_output_costs_the_output_and_not_the_call(
    bench: ToolBench,
) -> None:
    bench.outputs.rmdir()
    bench.outputs.write_text("in the way")
    success = await bench.success("bash", command="yes | head -c 3000000; echo end; exit 3")
    assert (success.structured["exit"], success.output_paths) == (3, ())
    assert "The rest was not kept" in text_of(success)
    assert "end\n" in text_of(success)


async def test_binary_output_is_said_to_be_binary_and_kept(bench: ToolBench) -> None:
    success = await bench.success("bash", command="head -c 2000 /dev/zero")
    (path,) = success.output_paths
    assert Path(path).read_bytes() == bytes(2_000)
    assert text_of(success).startswith("[Binary output, not shown: 1 lines, 2000 bytes in all.")
    listing = await bench.text("bash", command=r"printf 'one file\000another file\000'")
    assert listing.startswith("one file\u2400another file\u2400")


@requirement("S191")
async def test_jobs_left_in_the_background_are_ended_and_that_is_said(bench: ToolBench) -> None:
    said = "left running in the background were ended"
    assert said in await bench.text("bash", command="sleep 60 & echo on")
    assert said in await bench.text("bash", command="sleep 60 > /dev/null 2>&1 & echo on")
    assert said not in await bench.text("bash", command="sleep 0.05 & wait; echo on")


async def test_secrets_are_not_in_the_environment_of_commands(tmp_path: Path) -> None:
    bench = ToolBench(tmp_path)
    variables = {"PATH": os.environ["PATH"], "SOME": "thing"}
    bench.environment = replace(bench.environment, variables=variables)
    with bench.open():
        assert "SOME=thing" in await bench.text("bash", command="env")
        assert "HOME=" not in await bench.text("bash", command="env")


@requirement("S99")
async def test_a_result_that_will_be_cut_for_the_model_says_so(bench: ToolBench) -> None:
    success = await bench.success("bash", command="seq 1 20000")
    assert success.structured == {"exit": 0, "truncated": True}
    output = await bound(success, bench.store, bench.limits)
    (part,) = output.content
    assert isinstance(part, TextContent)
    assert output.output_paths[0] in part.text
    assert part.text.endswith("20000\nCommand exited with code 0.")


async def test_a_persons_words_reach_the_model(bench: ToolBench) -> None:
    bench.desk.answers["bash"] = PermissionCorrectedError("use make test")
    assert await bench.error("bash", command="pytest") == "use make test"


async def test_commands_that_cannot_start_are_refused(bench: ToolBench) -> None:
    assert "NUL" in await bench.error("bash", command="a\0b")
    assert "longer than" in await bench.error("bash", command="x" * 3_000_000)
    assert "Invalid tool input" in await bench.error("bash", command="")
    assert "at most 600000 milliseconds" in await bench.error("bash", command="x", timeout=600_001)
    assert "Invalid tool input" in await bench.error("bash", command="x", timeout=86_400_001)
    assert "without `background`" in await bench.error("bash", command="x", background=True)


async def test_what_a_running_command_prints_is_reported_at_growing_intervals(
    bench: ToolBench,
) -> None:
    words: list[str] = []
    context = heard(words)
    offered = bench.registry.materialize(())
    command = "for n in 1 2 3 4 5 6 7 8 9; do echo word $n; sleep 0.4; done"
    await offered.settle("bash", {"command": command}, context)
    assert 1 <= len(words) <= 2
    assert "word 1" in words[0]
    assert "word 9" not in words[0]


async def test_an_interrupted_command_is_gone_and_its_last_words_are_kept(
    bench: ToolBench,
) -> None:
    pipe = bench.root / "pid"
    os.mkfifo(pipe)
    words: list[str] = []
    given: JsonObject = {"command": "echo said before; echo $$ > pid; exec sleep 60"}
    offered = bench.registry.materialize(())
    async with asyncio.TaskGroup() as group:
        call = group.create_task(offered.settle("bash", given, heard(words)))
        pid = int(await asyncio.to_thread(pipe.read_text))
        call.cancel()
    assert call.cancelled()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert words == ["said before\n"]


def heard(words: list[str]) -> ToolCallContext:
    """The context of a call whose progress is written to `words`."""

    def report(progress: Progress) -> None:
        words.append(
            "".join(part.text for part in progress.content if isinstance(part, TextContent))
        )

    return replace(CONTEXT, report=report)


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("echo x > AGENTS.md", ["AGENTS.md"]),
        ("mkdir -p .git/hooks; echo x >>.git/hooks/pre-commit", [".git/hooks", "pre-commit"]),
        ("rm '.envrc'", [".envrc"]),
        ("touch -d yesterday .vscode/tasks.json", [".vscode/tasks.json"]),
        ("cat .envrc .vscode/tasks.json AGENTS.md", []),
        ("echo x > notes.txt", []),
    ],
)
async def test_a_command_that_changes_what_others_obey_says_so(
    bench: ToolBench, command: str, changed: list[str]
) -> None:
    bench.write({".envrc": "a\n", ".vscode/tasks.json": "{}\n"})
    text = await bench.text("bash", command=command)
    warned = [line for line in text.splitlines() if "the command changed" in line]
    assert len(warned) == len(changed)
    assert all(name in line for name, line in zip(changed, warned, strict=True))
