"""What happens to a file once a tool has changed it, with real programs that behave or do not."""

import asyncio
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.settings.edit_programs import EditProgram, EditPrograms
from perdure.tools.files.post_edit import PostEdit
from tests.contract.tools.tool_bench import ToolBench, text_of
from tests.support.watched_processes import WatchedProcesses


def program(name: str, script: str, *extensions: str) -> EditProgram:
    """A program that is one line of shell; the file is its first argument."""
    return EditProgram(
        name=name, command=("/bin/sh", "-c", script, name, "$FILE"), extensions=extensions
    )


@contextmanager
def looking(
    bench: ToolBench,
    *,
    formatters: tuple[EditProgram, ...] = (),
    checkers: tuple[EditProgram, ...] = (),
) -> Generator[list[str]]:
    """The tools with these programs; the paths that were told of."""
    edited: list[str] = []
    after = PostEdit(
        programs=EditPrograms(formatters=formatters, checkers=checkers),
        directory=str(bench.root),
        processes=_Hurried(),
        variables={"PATH": os.environ["PATH"]},
        edited=edited.append,
    )
    bench.environment = replace(bench.environment, after_edit=after)
    with bench.open():
        yield edited


class _Hurried(WatchedProcesses):
    """Programs are given little time."""

    async def starting(self, arguments: Sequence[str], seconds: float) -> float:
        assert seconds <= limits.CHECKER_SECONDS_MAX
        return 1.0


@pytest.fixture
def bench(tmp_path: Path) -> ToolBench:
    return ToolBench(tmp_path)


UPPER = program("upper", 'tr a-z A-Z < "$1" > "$1.new" && mv "$1.new" "$1"', ".txt")


async def test_what_a_formatter_leaves_is_what_counts(bench: ToolBench) -> None:
    with looking(bench, formatters=(UPPER,)) as edited:
        await bench.text("write", path="a.txt", content="one\ntwo\n")
        assert (bench.root / "a.txt").read_text() == "ONE\nTWO\n"
        # The Session has seen what the formatter left, so it may go on from there.
        success = await bench.success("edit", path="a.txt", oldString="ONE", newString="three")
        await bench.text("write", path="a.txt", content="four\n")
    assert (bench.root / "a.txt").read_text() == "FOUR\n"
    assert "+THREE" in success.structured["files"][0]["patch"]
    assert edited == [str(bench.root / "a.txt")] * 3


async def test_a_patch_is_looked_after_file_by_file(bench: ToolBench) -> None:
    bench.write({"old.txt": "x\n", "gone.txt": "y\n"})
    checker = program("checker", 'grep -n X "$1" && exit 1', ".txt")
    patch = "\n".join(
        [
            "*** Begin Patch",
            "*** Add File: new.txt",
            "+a",
            "*** Update File: old.txt",
            "@@",
            "-x",
            "+xx",
            "*** Delete File: gone.txt",
            "*** End Patch",
        ]
    )
    with looking(bench, formatters=(UPPER,), checkers=(checker,)) as edited:
        success = await bench.success("apply_patch", patchText=patch)
    assert (bench.root / "new.txt").read_text() == "A\n"
    assert (bench.root / "old.txt").read_text() == "XX\n"
    names = sorted(Path(path).name for path in edited)
    assert names == ["gone.txt", "new.txt", "old.txt"]
    assert "Diagnostics after this edit:\n1:XX" in text_of(success)
    patches = {file["path"]: file["patch"] for file in success.structured["files"]}
    assert "+XX" in patches["old.txt"]


async def test_other_files_are_left_alone(bench: ToolBench) -> None:
    with looking(bench, formatters=(UPPER,), checkers=(program("no", "exit 1", "md"),)):
        said = await bench.text("write", path="a.py", content="one")
    assert (bench.root / "a.py").read_text() == "one"
    assert said == "Created file successfully: a.py"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo no such rule; exit 3", "failed with code 3: no such rule"),
        ("sleep 60", "took too long and was stopped"),
        ("sleep 60 & exit 0", ""),
        ('rm "$1"', "what was written is there again"),
        (': > "$1"', "what was written is there again"),
        ('rm "$1"; mkfifo "$1"', "what was written is there again"),
        ('rm "$1"; ln -s /etc/passwd "$1"', "what was written is there again"),
        ("yes | head -c 100000000", ""),
        ("kill -9 $$", "failed with code"),
    ],
)
async def test_a_formatter_that_misbehaves_is_a_note_and_loses_nothing(
    bench: ToolBench, script: str, said: str
) -> None:
    with looking(bench, formatters=(program("bad", script),)):
        async with asyncio.timeout(10):
            told = await bench.text("write", path="a.txt", content="precious")
    assert "Created file successfully: a.txt" in told
    assert said in told
    assert len(told) < 1_000
    assert (bench.root / "a.txt").read_text() == "precious"
    assert not (bench.root / "a.txt").is_symlink()


async def test_a_formatter_that_is_not_there_is_a_note(bench: ToolBench) -> None:
    missing = EditProgram(name="missing", command=("/no/such/program",), extensions=())
    with looking(bench, formatters=(missing,)):
        told = await bench.text("write", path="a.txt", content="x")
    assert "The formatter missing did not run" in told


async def test_diagnostics_are_told_when_a_checker_fails_and_bounded(bench: ToolBench) -> None:
    script = "import sys; print('line ' * 500); [print(n) for n in range(500)]; sys.exit(1)"
    noisy = EditProgram(name="noisy", command=(sys.executable, "-c", script), extensions=())
    content = program("content", "echo a warning; exit 0")
    with looking(bench, checkers=(content, noisy)):
        told = await bench.text("write", path="a.txt", content="x")
    head, _, problems = told.partition("\n\n")
    assert head == "Created file successfully: a.txt"
    assert problems.startswith("Diagnostics after this edit:\nline line")
    assert "a warning" not in told
    assert problems.endswith("(481 more lines)")
    assert len(told) < 2_000


async def test_a_file_name_is_an_argument_and_never_a_command(bench: ToolBench) -> None:
    with looking(bench, formatters=(UPPER,)):
        await bench.text("write", path="$(touch x); 'a.txt", content="one")
    assert sorted(path.name for path in bench.root.iterdir()) == ["$(touch x); 'a.txt"]
    assert (bench.root / "$(touch x); 'a.txt").read_text() == "ONE"
