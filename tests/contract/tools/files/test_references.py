"""Named references: `@name/path`, for reading and searching only."""

from pathlib import Path

import pytest

from perdure.ports import PermissionBlockedError
from tests.contract.tools.tool_bench import ToolBench
from tests.requirements import requirement


@pytest.fixture
def library(bench: ToolBench, tmp_path: Path) -> Path:
    library = tmp_path / "library"
    (library / "src").mkdir(parents=True)
    (library / "src" / "a.py").write_text("needle\n")
    (tmp_path / "loot.txt").write_text("needle\n")
    bench.references["lib"] = str(library)
    return library


@requirement("S171")
async def test_a_reference_is_read_listed_and_searched_by_its_name(
    bench: ToolBench, library: Path
) -> None:
    assert (await bench.structured("read", path="@lib/src/a.py"))["content"] == "needle\n"
    listing = await bench.structured("read", path="@lib")
    assert [entry["path"] for entry in listing["entries"]] == ["src/"]
    assert str(library / "src/a.py") in await bench.text("glob", pattern="*.py", path="@lib")
    assert str(library / "src/a.py") in await bench.text("grep", pattern="needle", path="@lib/src")


@requirement("S171")
async def test_one_approval_is_for_the_whole_reference(bench: ToolBench, library: Path) -> None:
    await bench.success("read", path="@lib/src/a.py")
    assert bench.desk.questions() == [
        ("external_directory", (f"{library}/*",)),
        ("read", (str(library / "src/a.py"),)),
    ]
    bench.desk.answers["external_directory"] = PermissionBlockedError("no")
    assert await bench.error("read", path="@lib/src/a.py") == "no"


@requirement("S175")
async def test_a_reference_is_not_written(bench: ToolBench, library: Path) -> None:
    calls = [
        bench.error("write", path="@lib/new", content="x"),
        bench.error("edit", path="@lib/src/a.py", oldString="needle", newString="x"),
        bench.error(
            "apply_patch",
            patchText="*** Begin Patch\n*** Delete File: @lib/src/a.py\n*** End Patch",
        ),
    ]
    for call in calls:
        assert "only for reading" in await call
    assert bench.desk.asked == []
    assert (library / "src/a.py").read_text() == "needle\n"


@pytest.mark.parametrize("path", ["@lib/../loot.txt", "@lib/out", "@lib/way/loot.txt"])
async def test_no_path_leads_out_of_a_reference(bench: ToolBench, library: Path, path: str) -> None:
    (library / "out").symlink_to(library.parent / "loot.txt")
    (library / "way").symlink_to(library.parent)
    assert "outside the reference" in await bench.error("read", path=path)
    assert bench.desk.asked == []


async def test_a_name_that_is_no_reference_is_a_path(bench: ToolBench, library: Path) -> None:
    bench.write({"@types/x.ts": "type", "@lib/own.txt": "own"})
    assert (await bench.structured("read", path="@types/x.ts"))["content"] == "type"
    assert (await bench.structured("read", path="./@lib/own.txt"))["content"] == "own"
    assert "no such file" in await bench.error("read", path="@lib/own.txt")


async def test_a_reference_that_is_not_there_is_named(bench: ToolBench) -> None:
    bench.references["gone"] = str(bench.outside / "gone")
    assert "no such file" in await bench.error("read", path="@gone/x")


async def test_a_reference_into_the_project_is_the_project(bench: ToolBench) -> None:
    bench.write({"docs/a": "text"})
    bench.references["docs"] = str(bench.root / "docs")
    assert (await bench.structured("read", path="@docs/a"))["content"] == "text"
    assert bench.desk.questions() == [("read", ("docs/a",))]
