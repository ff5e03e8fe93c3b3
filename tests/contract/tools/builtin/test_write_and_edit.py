"""write and edit: what changes a file, and what must not."""

import asyncio
import os
import stat

import pytest

from perdure.core.limits import EDIT_FILE_BYTES_MAX
from perdure.ports import PermissionBlockedError
from tests.contract.tools.tool_bench import ToolBench
from tests.requirements import requirement


@requirement("S176", "S178", "S180")
async def test_write_creates_a_file_with_its_directories(bench: ToolBench) -> None:
    success = await bench.success("write", path="a/b/new.txt", content="héllo\n")
    path = bench.root / "a/b/new.txt"
    assert path.read_text() == "héllo\n"
    assert success.structured == {
        "operation": "write",
        "target": str(path),
        "resource": "a/b/new.txt",
        "existed": False,
        "files": [
            {
                "path": "a/b/new.txt",
                "status": "added",
                "additions": 1,
                "deletions": 0,
                "patch": "--- a/a/b/new.txt\n+++ b/a/b/new.txt\n@@ -0,0 +1 @@\n+héllo\n",
            }
        ],
    }
    assert await bench.text("write", path="x", content="") == "Created file successfully: x"
    (ask, _) = bench.desk.asked
    assert (ask.action, ask.resources, ask.save) == ("edit", ("a/b/new.txt",), ("*",))


async def test_write_replaces_a_file_and_keeps_its_mode(bench: ToolBench) -> None:
    bench.write({"run.sh": "old"})
    (bench.root / "run.sh").chmod(0o755)
    await bench.success("read", path="run.sh")
    assert await bench.text("write", path="run.sh", content="new") == (
        "Wrote file successfully: run.sh"
    )
    assert (bench.root / "run.sh").read_text() == "new"
    assert stat.S_IMODE((bench.root / "run.sh").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        ("\ufeffold", "new", "\ufeffnew"),
        ("\ufeffold", "\ufeffnew", "\ufeffnew"),
        ("old", "\ufeff\ufeffnew", "\ufeffnew"),
        ("old", "new", "new"),
    ],
)
async def test_a_byte_order_mark_stays_and_is_there_once(
    bench: ToolBench, before: str, content: str, after: str
) -> None:
    bench.write({"f": before})
    await bench.success("read", path="f")
    await bench.success("write", path="f", content=content)
    assert (bench.root / "f").read_text() == after


async def test_write_touches_nothing_but_regular_files(bench: ToolBench) -> None:
    bench.write({"directory/f": "", "file": ""})
    os.mkfifo(bench.root / "pipe")
    assert "is a directory" in await bench.error("write", path="directory", content="")
    assert "is a directory" in await bench.error("write", path=".", content="")
    assert "not a regular file" in await bench.error("write", path="pipe", content="")
    assert "Unable to write" in await bench.error("write", path="file/below", content="")
    assert stat.S_ISFIFO((bench.root / "pipe").stat().st_mode)


@requirement("S175")
async def test_writing_follows_links_inside_and_refuses_those_that_lead_out(
    bench: ToolBench,
) -> None:
    bench.write({"real.txt": "old"})
    (bench.root / "inside").symlink_to("real.txt")
    (bench.root / "outside").symlink_to(bench.outside / "new.txt")
    (bench.root / "dir").symlink_to(bench.outside)
    await bench.success("read", path="inside")
    success = await bench.success("write", path="inside", content="new")
    assert success.structured["resource"] == "real.txt"
    assert (bench.root / "inside").is_symlink()
    for path in ("outside", "dir/deep/f", "../f"):
        assert "outside the project" in await bench.error("write", path=path, content="x")
    assert list(bench.outside.iterdir()) == []


@requirement("S175")
async def test_a_link_put_in_place_while_the_person_decides_is_not_followed(
    bench: ToolBench,
) -> None:
    bench.write({"f": "old"})

    def swap() -> None:
        (bench.root / "f").unlink()
        (bench.root / "f").symlink_to(bench.outside / "victim")

    bench.desk.meanwhile = swap
    assert "replaced by a link" in await bench.error("write", path="f", content="x")
    assert list(bench.outside.iterdir()) == []


@requirement("S175")
async def test_writing_outside_is_approved_by_directory_first(bench: ToolBench) -> None:
    path = bench.outside / "new" / "f"
    await bench.success("write", path=str(path), content="x")
    assert bench.desk.questions() == [
        ("external_directory", (f"{bench.outside}/*",)),
        ("edit", (str(path),)),
    ]


async def test_without_permission_nothing_is_written(bench: ToolBench) -> None:
    bench.write({"f": "old"})
    bench.desk.answers["edit"] = PermissionBlockedError("denied")
    assert await bench.error("write", path="deep/new", content="x") == "denied"
    assert await bench.error("edit", path="f", oldString="absent", newString="x") == "denied"
    assert [path.name for path in bench.root.iterdir()] == ["f"]


@requirement("S176", "S178", "S180")
async def test_edit_replaces_an_exact_passage(bench: ToolBench) -> None:
    bench.write({"a.py": "one\ntwo\nthree\n"})
    success = await bench.success("edit", path="a.py", oldString="two", newString="2")
    assert (bench.root / "a.py").read_text() == "one\n2\nthree\n"
    (file,) = success.structured["files"]
    assert (file["path"], file["status"]) == ("a.py", "modified")
    assert (file["additions"], file["deletions"]) == (1, 1)
    assert "-two\n+2\n" in file["patch"]
    assert success.structured["replacements"] == 1
    (ask,) = bench.desk.asked
    assert (ask.action, ask.resources, ask.save) == ("edit", ("a.py",), ("*",))


async def test_the_model_sees_a_short_preview_of_an_edit(bench: ToolBench) -> None:
    bench.write({"a.py": "x x"})
    text = await bench.text("edit", path="a.py", oldString="x", newString="y", replaceAll=True)
    assert text == "Edited file successfully: a.py\nReplacements: 2\n- x\n+ y"


async def test_edit_keeps_line_endings_and_the_byte_order_mark(bench: ToolBench) -> None:
    bench.write({"a.txt": "\ufeffa\r\nb\r\n"})
    await bench.success("edit", path="a.txt", oldString="a\nb", newString="x\ny\nz")
    assert (bench.root / "a.txt").read_bytes() == "\ufeffx\r\ny\r\nz\r\n".encode()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [("", "x", "must not be empty"), ("x", "x", "identical")],
)
async def test_a_pointless_edit_is_refused_before_anybody_is_asked(
    bench: ToolBench, old: str, new: str, said: str
) -> None:
    bench.write({"f": "x"})
    assert said in await bench.error("edit", path="f", oldString=old, newString=new)
    assert bench.desk.asked == []


async def test_an_edit_that_does_not_fit_the_file_changes_nothing(bench: ToolBench) -> None:
    bench.write({"f": "x x", "latin": b"\xe9", "directory/f": ""})
    assert "not found" in await bench.error("edit", path="f", oldString="y", newString="z")
    assert "2 times" in await bench.error("edit", path="f", oldString="x", newString="z")
    assert "UTF-8" in await bench.error("edit", path="latin", oldString="x", newString="z")
    assert "regular" in await bench.error("edit", path="directory", oldString="x", newString="z")
    assert "no such" in await bench.error("edit", path="gone", oldString="x", newString="z")
    assert (bench.root / "f").read_text() == "x x"


async def test_a_file_too_large_to_edit_is_refused(bench: ToolBench) -> None:
    with (bench.root / "huge").open("wb") as file:
        file.truncate(EDIT_FILE_BYTES_MAX + 1)
    assert "too large" in await bench.error("edit", path="huge", oldString="x", newString="y")


async def test_an_edit_works_on_what_is_there_after_approval(bench: ToolBench) -> None:
    bench.write({"f": "old"})
    bench.desk.meanwhile = lambda: (bench.root / "f").write_text("changed by hand")
    assert "not found" in await bench.error("edit", path="f", oldString="old", newString="new")
    assert (bench.root / "f").read_text() == "changed by hand"


async def test_edits_made_side_by_side_all_arrive(bench: ToolBench) -> None:
    bench.write({"f": "".join(f"<{number}>\n" for number in range(20))})
    await asyncio.gather(
        *(
            bench.success("edit", path="f", oldString=f"<{number}>", newString=f"({number})")
            for number in range(20)
        )
    )
    assert (bench.root / "f").read_text() == "".join(f"({number})\n" for number in range(20))
