"""glob and grep: the same answers with ripgrep and with our own search program."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import cast

import pytest
from msgspec.structs import replace

from perdure.core.limits import SEARCH_OWN_SECONDS_MAX
from perdure.host.process.runner import LocalProcesses, find_ripgrep
from perdure.ports import OutputSink, ProcessResult
from tests.contract.tools.tool_bench import ToolBench
from tests.requirements import requirement

RIPGREP = find_ripgrep()
TREE = {
    "src/app.py": "import os\nneedle here\n",
    "src/deep/util.py": "needle NEEDLE needle\n",
    "src/web/page.tsx": "needle\n",
    "notes.txt": "nothing\n",
    ".gitignore": "build/\n*.log\n!keep.log\n",
    "build/out.py": "needle\n",
    "debug.log": "needle\n",
    "keep.log": "needle\n",
    "src/.ignore": "secret.py\n",
    "src/secret.py": "needle\n",
    ".env": "needle\n",
    ".hidden/a.py": "needle\n",
    ".git/config": "needle\n",
    "image.bin": b"needle\0\xff",
}


@pytest.fixture(params=["program", "ripgrep"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ToolBench]:
    with_ripgrep = cast("str", request.param) == "ripgrep"
    assert RIPGREP is not None, "ripgrep comes with the development packages"
    workbench = ToolBench(tmp_path, ripgrep=RIPGREP if with_ripgrep else None)
    workbench.write(TREE)
    with workbench.open():
        yield workbench


async def found(bench: ToolBench, pattern: str, **more: object) -> list[str]:
    structured = await bench.structured("glob", pattern=pattern, **more)
    return [entry["path"] for entry in structured["entries"]]


async def matched(bench: ToolBench, pattern: str, **more: object) -> list[tuple[str, int]]:
    structured = await bench.structured("grep", pattern=pattern, **more)
    return [(match["entry"]["path"], match["line"]) for match in structured["matches"]]


@requirement("S170", "S173", "S180")
async def test_glob_finds_files_by_path_without_hidden_and_ignored_ones(bench: ToolBench) -> None:
    assert await found(bench, "*.py") == ["src/app.py", "src/deep/util.py"]
    assert await found(bench, "src/*.py") == ["src/app.py"]
    assert await found(bench, "**/*.{tsx,log}") == ["keep.log", "src/web/page.tsx"]
    assert await found(bench, "*.py", path="src/deep") == ["src/deep/util.py"]
    assert await found(bench, ".*") == []
    assert await found(bench, "*.zig") == []


@requirement("S178")
async def test_glob_asks_for_its_pattern_and_shows_absolute_paths(bench: ToolBench) -> None:
    text = await bench.text("glob", pattern="page*")
    assert text == str(bench.root / "src/web/page.tsx")
    (ask,) = bench.desk.asked
    assert (ask.action, ask.resources, ask.save) == ("glob", ("page*",), ("*",))
    assert ask.metadata == {"root": str(bench.root), "path": ".", "limit": 100}
    assert await bench.text("glob", pattern="nope*") == "No files found"


@requirement("S170")
async def test_glob_stops_at_its_limit_and_says_so(bench: ToolBench) -> None:
    bench.write({f"many/{number:03}.md": "" for number in range(120)})
    structured = await bench.structured("glob", pattern="*.md")
    assert (len(structured["entries"]), structured["truncated"]) == (100, True)
    structured = await bench.structured("glob", pattern="*.md", limit=120)
    assert (len(structured["entries"]), structured["truncated"]) == (120, False)


@pytest.mark.parametrize("pattern", ["/etc/*", "../*", "[z-a]", "a" * 2_000, "a\0b"])
async def test_glob_refuses_patterns_that_it_cannot_honour(bench: ToolBench, pattern: str) -> None:
    assert await bench.error("glob", pattern=pattern)
    assert bench.desk.asked == []


@requirement("S170", "S173", "S180")
async def test_grep_finds_lines_without_hidden_ignored_and_binary_files(bench: ToolBench) -> None:
    everywhere = [
        ("keep.log", 1),
        ("src/app.py", 2),
        ("src/deep/util.py", 1),
        ("src/web/page.tsx", 1),
    ]
    assert await matched(bench, "needle") == everywhere
    assert await matched(bench, "needle", include="*.py") == everywhere[1:3]
    assert await matched(bench, "needle", include="src/**/*.{py,tsx}") == everywhere[1:]
    assert await matched(bench, "needle", include="*.log") == everywhere[:1]
    assert await matched(bench, "needle", path="src/web") == everywhere[3:]
    assert await matched(bench, "needle", path=".env") == [(".env", 1)]
    assert await matched(bench, "-needle") == []


async def test_grep_says_where_in_the_line(bench: ToolBench) -> None:
    bench.write({"é.md": "one\nzwei é needle\n"})
    structured = await bench.structured("grep", pattern="needle", include="*.md")
    (match,) = structured["matches"]
    assert match == {
        "entry": {"path": "é.md", "type": "file"},
        "line": 2,
        "offset": 4,
        "text": "zwei é needle",
        "submatches": [{"text": "needle", "start": 8, "end": 14}],
    }


@requirement("S178")
async def test_grep_groups_lines_by_file_for_the_model(bench: ToolBench) -> None:
    text = await bench.text("grep", pattern="import|needle h", path="src/app.py")
    path = bench.root / "src/app.py"
    assert text == f"Found 2 matches\n\n{path}:\n  Line 1: import os\n  Line 2: needle here"
    (ask,) = bench.desk.asked
    assert (ask.action, ask.resources, ask.save) == ("grep", ("import|needle h",), ("*",))
    assert await bench.text("grep", pattern="absent") == "No matches found"


@requirement("S170")
async def test_grep_stops_at_its_limit_and_cuts_long_lines(bench: ToolBench) -> None:
    bench.write({"long.md": "x" * 10_000 + "\n" + "x\n" * 150})
    structured = await bench.structured("grep", pattern="x+", include="*.md")
    assert (len(structured["matches"]), structured["truncated"]) == (100, True)
    assert structured["matches"][0]["text"] == "x" * 2_000 + "..."


async def test_an_invalid_expression_is_explained(bench: ToolBench) -> None:
    message = await bench.error("grep", pattern="(unclosed")
    assert message.startswith("Invalid search pattern: ")
    assert "regex parse error" in message


async def test_grep_reads_lines_that_are_not_text_in_any_encoding(bench: ToolBench) -> None:
    bench.write({"latin.md": b"caf\xe9 needle\n"})
    structured = await bench.structured("grep", pattern="needle", include="*.md")
    assert structured["matches"][0]["text"] == "caf\ufffd needle"


@requirement("S172")
async def test_a_search_does_not_leave_its_root_through_links(bench: ToolBench) -> None:
    (bench.outside / "loot.py").write_text("needle\n")
    (bench.root / "src" / "way_out").symlink_to(bench.outside)
    assert "loot.py" not in str(await found(bench, "*.py"))
    assert "loot.py" not in str(await matched(bench, "needle"))
    assert "symbolic link" in await bench.error("glob", pattern="*", path="src/way_out")


async def test_searching_outside_is_approved_before_the_search_itself(bench: ToolBench) -> None:
    (bench.outside / "loot.py").write_text("needle\n")
    outside = str(bench.outside)
    assert await found(bench, "*.py", path=outside) == [f"{outside}/loot.py"]
    assert await matched(bench, "needle", path=outside) == [(f"{outside}/loot.py", 1)]
    assert [ask.action for ask in bench.desk.asked] == [
        "external_directory",
        "glob",
        "external_directory",
        "grep",
    ]
    assert bench.desk.asked[0].resources == (f"{outside}/*",)


async def test_a_place_that_is_not_there_is_named(bench: ToolBench) -> None:
    assert "no such file" in await bench.error("glob", pattern="*", path="gone")
    assert "not a directory" in await bench.error("glob", pattern="*", path="notes.txt")
    assert "no such file" in await bench.error("grep", pattern="x", path="gone")


async def test_names_with_odd_characters_are_found(bench: ToolBench) -> None:
    bench.write({"odd/a b\n'c'.md": "needle\n", "odd/-dash.md": "needle\n"})
    (bench.root / "odd" / os.fsdecode(b"\xff.md")).write_text("needle\n")
    names = ["odd/-dash.md", "odd/a b\n'c'.md", "odd/\ufffd.md"]
    assert await found(bench, "odd/*") == names
    assert {path for path, _ in await matched(bench, "needle", path="odd")} == set(names)
    assert await matched(bench, "needle", path="odd/-dash.md") == [("odd/-dash.md", 1)]


async def test_a_cancelled_search_ends_at_once(bench: ToolBench) -> None:
    # Catastrophic for a backtracking engine: only ending the process can stop it.
    bench.write({"bomb.md": "a" * 5_000 + "!\n"})
    started = perf_counter()
    with suppress(TimeoutError):
        async with asyncio.timeout(0.5):
            await bench.call("grep", pattern="(a+)+$", include="*.md")
    assert perf_counter() - started < 4


@requirement("S173")
async def test_a_filter_by_name_does_not_let_hidden_files_through(bench: ToolBench) -> None:
    bench.write({".secret.py": "needle\n", "src/.secret.py": "needle\n"})
    for pattern in ("*.py", "**/*.py", "*.{py,zig}"):
        assert await found(bench, pattern) == ["src/app.py", "src/deep/util.py"]
        assert {path for path, _ in await matched(bench, "needle", include=pattern)} == {
            "src/app.py",
            "src/deep/util.py",
        }


async def test_links_that_lead_in_circles_and_deep_trees_come_to_an_end(bench: ToolBench) -> None:
    (bench.root / "src" / "again").symlink_to("..")
    (bench.root / "src" / "self").symlink_to("self")
    deep = "/".join("d" * 120)
    bench.write({f"{deep}/end.md": "needle\n"})
    async with asyncio.timeout(20):
        assert await found(bench, "*.md") == [f"{deep}/end.md"]
        assert await matched(bench, "needle", include="*.md") == [(f"{deep}/end.md", 1)]


async def test_one_huge_line_hides_no_other_match(bench: ToolBench) -> None:
    bench.write({"a.md": "x" * 20_000_000 + "needle\n", "b.md": "needle\n"})
    structured = await bench.structured("grep", pattern="needle", include="*.md")
    paths = [match["entry"]["path"] for match in structured["matches"]]
    assert "b.md" in paths
    assert all(len(match["text"]) <= 2_003 for match in structured["matches"])


async def test_a_line_with_very_many_matches_is_shown_once(bench: ToolBench) -> None:
    bench.write({"a.md": "x" * 60_000 + "\n"})
    structured = await bench.structured("grep", pattern="x", include="*.md")
    (match,) = structured["matches"]
    assert len(match["submatches"]) == 100


@requirement("S170")
async def test_more_matches_than_anybody_collects_come_in_path_order(bench: ToolBench) -> None:
    bench.write({f"many/{number:02}.md": "needle\n" * 400 for number in range(30)})
    structured = await bench.structured("grep", pattern="needle", path="many", limit=1_000)
    places = [(match["entry"]["path"], match["line"]) for match in structured["matches"]]
    assert places == sorted(places)
    assert places[0] == ("many/00.md", 1)
    assert (len(places), structured["truncated"]) == (1_000, True)


async def test_a_first_line_after_a_byte_order_mark_is_a_line_like_any_other(
    bench: ToolBench,
) -> None:
    bench.write({"bom.md": b"\xef\xbb\xbfneedle one\nneedle two\n"})
    assert await matched(bench, "^needle", include="*.md") == [("bom.md", 1), ("bom.md", 2)]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for the superuser")
async def test_an_unreadable_directory_is_passed_over(bench: ToolBench) -> None:
    bench.write({"closed/x.md": "needle\n", "open.md": "needle\n"})
    (bench.root / "closed").chmod(0)
    try:
        assert await matched(bench, "needle", include="*.md") == [("open.md", 1)]
    finally:
        (bench.root / "closed").chmod(0o755)


class ImpatientProcesses(LocalProcesses):
    """Ends what never ends sooner than it was told to, and remembers what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[float] = []

    async def run_into(
        self,
        sink: OutputSink,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str] | None = None,
        timeout_seconds: float,
    ) -> ProcessResult:
        self.told.append(timeout_seconds)
        return await super().run_into(
            sink,
            arguments,
            directory=directory,
            environment=environment,
            timeout_seconds=timeout_seconds / 4,
        )


async def test_an_expression_that_never_ends_is_ended_and_what_was_found_is_kept(
    tmp_path: Path,
) -> None:
    workbench, processes = ToolBench(tmp_path, ripgrep=None), ImpatientProcesses()
    workbench.environment = replace(workbench.environment, processes=processes)
    workbench.write({"a.md": "aaa\n", "bomb.md": "a" * 5_000 + "!\n"})
    with workbench.open():
        async with asyncio.timeout(SEARCH_OWN_SECONDS_MAX * 3):
            structured = await workbench.structured("grep", pattern="(a+)+$", include="*.md")
    assert [match["entry"]["path"] for match in structured["matches"]] == ["a.md"]
    assert structured["truncated"] is True
    assert processes.told == [SEARCH_OWN_SECONDS_MAX]
