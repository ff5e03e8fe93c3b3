"""apply_patch: all of a patch or an honest account of which part."""

import asyncio
import os
import stat

import pytest

from perdure.core.limits import EDIT_FILE_BYTES_MAX, PATCH_FILES_MAX
from perdure.ports import PermissionBlockedError
from tests.contract.tools.tool_bench import ToolBench
from tests.requirements import requirement


def wrapped(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


FOUR = wrapped(
    "*** Add File: new/a.txt",
    "+one",
    "*** Update File: b.txt",
    "@@",
    "-old",
    "+new",
    "*** Delete File: c.txt",
    "*** Update File: d.txt",
    "*** Move to: moved/d.txt",
    "@@",
    "-dee",
    "+DEE",
)


def snapshot(bench: ToolBench) -> dict[str, bytes]:
    return {
        str(path.relative_to(bench.root)): path.read_bytes()
        for path in sorted(bench.root.rglob("*"))
        if path.is_file()
    }


@requirement("S187", "S188")
async def test_files_are_added_changed_deleted_and_moved_in_order(bench: ToolBench) -> None:
    bench.write({"b.txt": "old\n", "c.txt": "c\n", "d.txt": "dee\n"})
    success = await bench.success("apply_patch", patchText=FOUR)
    assert snapshot(bench) == {
        "new/a.txt": b"one\n",
        "b.txt": b"new\n",
        "moved/d.txt": b"DEE\n",
    }
    root = bench.root
    assert success.structured["applied"] == [
        {"type": "add", "resource": "new/a.txt", "target": str(root / "new/a.txt")},
        {"type": "update", "resource": "b.txt", "target": str(root / "b.txt")},
        {"type": "delete", "resource": "c.txt", "target": str(root / "c.txt")},
        {"type": "move", "resource": "moved/d.txt", "target": str(root / "moved/d.txt")},
    ]
    statuses = [(diff["path"], diff["status"]) for diff in success.structured["files"]]
    assert statuses == [
        ("new/a.txt", "added"),
        ("b.txt", "modified"),
        ("c.txt", "deleted"),
        ("moved/d.txt", "modified"),
    ]


@requirement("S187")
async def test_one_approval_names_every_file_before_any_is_read(bench: ToolBench) -> None:
    bench.write({"b.txt": "other\n", "c.txt": "c\n", "d.txt": "dee\n"})
    bench.desk.answers["edit"] = PermissionBlockedError("no")
    assert await bench.error("apply_patch", patchText=FOUR) == "no"
    assert bench.desk.questions() == [
        ("edit", ("new/a.txt", "b.txt", "c.txt", "d.txt", "moved/d.txt"))
    ]
    assert bench.desk.asked[0].save == ("*",)


@requirement("S187")
async def test_nothing_is_written_when_any_change_does_not_fit(bench: ToolBench) -> None:
    bench.write({"b.txt": "another text\n", "c.txt": "c\n", "d.txt": "dee\n"})
    before = snapshot(bench)
    told = await bench.error("apply_patch", patchText=FOUR)
    assert told.startswith("The patch does not fit b.txt: change 1")
    assert snapshot(bench) == before


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ((), "it changes no file"),
        (("*** Add File: b.txt", "+x"), "b.txt exists already"),
        (("*** Update File: b.txt", "*** Move to: c.txt"), "c.txt exists already"),
        (("*** Delete File: missing.txt",), "Unable to read missing.txt: no such file"),
        (("*** Delete File: folder",), "Unable to read folder: is a directory"),
        (("*** Delete File: b.txt", "*** Add File: ./b.txt", "+x"), "changes b.txt twice"),
        (("*** Add File: ../x", "+x"), "../x is outside the project"),
        (("*** Update File: b.txt", "@@", "-b\0"), "does not fit b.txt"),
        (("*** Add File: a\0b", "+x"), "NUL"),
        (("*** Add File: b.txt/x", "+x"), "Unable to apply the patch at b.txt/x"),
        (("*** Update File: binary", "@@", "-x"), "binary is not valid UTF-8"),
        (("*** Update File: pipe", "@@", "-x"), "Unable to read pipe"),
        (("nonsense",), "The patch is malformed: line 2"),
    ],
)
async def test_what_is_refused_is_named_and_changes_nothing(
    bench: ToolBench, lines: tuple[str, ...], told: str
) -> None:
    bench.write({"b.txt": "b\n", "c.txt": "c\n", "folder/x": "x"})
    (bench.root / "binary").write_bytes(b"\xff\xfe")
    os.mkfifo(bench.root / "pipe")
    before = snapshot(bench)
    assert told in await bench.error("apply_patch", patchText=wrapped(*lines))
    assert snapshot(bench) == before


async def test_a_file_or_a_patch_that_is_too_large_is_refused(bench: ToolBench) -> None:
    bench.write({"big": "x\n" * (EDIT_FILE_BYTES_MAX // 2 + 1)})
    told = await bench.error(
        "apply_patch", patchText=wrapped("*** Update File: big", "@@", "-x", "+y")
    )
    assert "too large" in told
    headers = [f"*** Delete File: f{number}" for number in range(PATCH_FILES_MAX + 1)]
    assert "at most" in await bench.error("apply_patch", patchText=wrapped(*headers))


@requirement("S187", "S186")
async def test_a_failure_half_way_says_what_was_already_changed(bench: ToolBench) -> None:
    bench.write({"b.txt": "old\n", "c.txt": "c\n"})
    patch = wrapped(
        "*** Update File: b.txt",
        "@@",
        "-old",
        "+new",
        "*** Add File: c.txt/below",
        "+x",
    )
    told = await bench.error("apply_patch", patchText=patch)
    assert told.startswith("Unable to apply the patch at c.txt/below: ")
    assert told.endswith("Already changed: b.txt.")
    assert snapshot(bench) == {"b.txt": b"new\n", "c.txt": b"c\n"}


@requirement("S176")
async def test_a_directory_outside_is_asked_for_once(bench: ToolBench) -> None:
    (bench.outside / "a").write_text("a\n")
    patch = wrapped(
        f"*** Update File: {bench.outside}/a",
        "@@",
        "-a",
        "+b",
        f"*** Add File: {bench.outside}/n",
        "+n",
    )
    await bench.success("apply_patch", patchText=patch)
    assert [action for action, _ in bench.desk.questions()] == ["external_directory", "edit"]
    assert (bench.outside / "a").read_text() == "b\n"


async def test_a_link_put_in_place_while_a_person_decides_is_not_followed(
    bench: ToolBench,
) -> None:
    bench.write({"b.txt": "old\n"})
    secret = bench.outside / "secret"
    secret.write_text("old\n")

    def swap() -> None:
        (bench.root / "b.txt").unlink()
        (bench.root / "b.txt").symlink_to(secret)

    bench.desk.meanwhile = swap
    patch = wrapped("*** Update File: b.txt", "@@", "-old", "+new")
    assert "replaced by a link" in await bench.error("apply_patch", patchText=patch)
    assert secret.read_text() == "old\n"


async def test_line_endings_mark_and_mode_are_kept(bench: ToolBench) -> None:
    path = bench.root / "run.sh"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    path.chmod(0o755)
    patch = wrapped("*** Update File: run.sh", "@@", " one", "-two", "+2")
    await bench.success("apply_patch", patchText=patch)
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\n2\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


async def test_patches_of_the_same_files_in_another_order_do_not_wait_for_each_other(
    bench: ToolBench,
) -> None:
    bench.write({"a": "0\n", "b": "0\n"})

    def both(first: str, second: str) -> str:
        return wrapped(
            *(f"*** Update File: {first}", "@@", "+x"), *(f"*** Update File: {second}", "@@", "+x")
        )

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(bench.call("apply_patch", patchText=both("a", "b")))
            group.create_task(bench.call("apply_patch", patchText=both("b", "a")))
    assert snapshot(bench) == {"a": b"0\n" + b"x\n" * 20, "b": b"0\n" + b"x\n" * 20}
