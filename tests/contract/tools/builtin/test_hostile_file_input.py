"""Malformed, hostile and huge input to every file tool: an error to read, and nothing else.

Each row is called on the same little project. Whatever the answer is, it comes in time, the project
and the directory beside it hold what they held, and no process was started that outlives the call.
"""

import asyncio
import os
from pathlib import Path

import pytest

from perdure.core.limits import (
    EDIT_FILE_BYTES_MAX,
    PATCH_BYTES_MAX,
    PATH_CHARS_MAX,
    SEARCH_PATTERN_CHARS_MAX,
    WRITE_FILE_BYTES_MAX,
)
from perdure.schema.codec import JsonObject
from tests.contract.tools.tool_bench import ToolBench
from tests.requirements import requirement

LONE = "\ud800"
LONG_NAME = "n" * 300


def patch(*lines: str) -> JsonObject:
    return {"patchText": "\n".join(("*** Begin Patch", *lines, "*** End Patch"))}


def edit(path: str, old: str = "one", new: str = "1", **more: object) -> JsonObject:
    return {"path": path, "oldString": old, "newString": new, **more}


Row = tuple[str, JsonObject, str]

PATHS: list[tuple[object, str]] = [
    ("", "Invalid tool input"),
    (7, "Invalid tool input"),
    (None, "Invalid tool input"),
    (["a"], "Invalid tool input"),
    ("a\0b", "NUL"),
    (LONE, "Unicode"),
    ("x" * (PATH_CHARS_MAX + 1), "longer than"),
    ("a/" * 500_000, "longer than"),
    ("../outside/secret", "outside the project"),
    ("a/../../outside/secret", "outside the project"),
    ("way_out/secret", "outside the project"),
    ("way_out", "outside the project"),
    ("loop", "links to itself"),
    ("loop/below", "links to itself"),
    ("text.txt/below", "not a directory"),
    (LONG_NAME, "too long"),
    ("pipe", "regular file"),
]
"""Paths that no file tool has any use for."""


def rows() -> list[Row]:
    table: list[Row] = []
    for path, told in PATHS:
        table += [
            ("read", {"path": path}, told),
            ("write", {"path": path, "content": "x"}, told),
            ("edit", {"path": path, "oldString": "one", "newString": "1"}, told),
        ]
        if path is not None:
            table.append(("grep", {"pattern": "one", "path": path}, told))
    return table + READ + WRITE + EDIT + PATCH + GLOB + GREP


READ: list[Row] = [
    ("read", {}, "Invalid tool input"),
    ("read", {"path": "gone"}, "no such file"),
    ("read", {"path": "text.txt", "offset": 0}, "Invalid tool input"),
    ("read", {"path": "text.txt", "offset": -1}, "Invalid tool input"),
    ("read", {"path": "text.txt", "offset": "1"}, "Invalid tool input"),
    ("read", {"path": "text.txt", "offset": 10**30}, "past the end"),
    ("read", {"path": "text.txt", "offset": 10**9}, "past the end"),
    ("read", {"path": "text.txt", "limit": 0}, "Invalid tool input"),
    ("read", {"path": "text.txt", "limit": 10**9}, "Invalid tool input"),
    ("read", {"path": "text.txt", "limit": 1.5}, "Invalid tool input"),
    ("read", {"path": ".", "offset": 10**9}, "past the end"),
    ("read", {"path": "binary"}, "binary"),
    ("read", {"path": "latin.txt"}, "UTF-8"),
    ("read", {"path": "document.pdf"}, "binary"),
    ("read", {"path": "/dev/zero"}, "regular file"),
    ("read", {"path": "/dev/null"}, "regular file"),
]
WRITE: list[Row] = [
    ("write", {"path": "new"}, "Invalid tool input"),
    ("write", {"path": "new", "content": 7}, "Invalid tool input"),
    ("write", {"path": "new", "content": LONE}, "Unicode"),
    ("write", {"path": "new", "content": "x" * (WRITE_FILE_BYTES_MAX + 1)}, "too large"),
    ("write", {"path": ".", "content": ""}, "is a directory"),
    ("write", {"path": "folder", "content": ""}, "is a directory"),
    ("write", {"path": "folder/", "content": ""}, "is a directory"),
    ("write", {"path": "text.txt", "content": ""}, "read it before"),
    ("write", {"path": "/proc/self/mem", "content": ""}, "Unable"),
    ("write", {"path": "/dev/null", "content": ""}, "regular file"),
    ("write", {"path": "/", "content": ""}, "is a directory"),
]
EDIT: list[Row] = [
    ("edit", {"path": "text.txt"}, "Invalid tool input"),
    ("edit", edit("gone"), "no such file"),
    ("edit", edit("text.txt", ""), "must not be empty"),
    ("edit", edit("text.txt", "x", "x"), "identical"),
    ("edit", edit("text.txt", LONE), "Unicode"),
    ("edit", edit("text.txt", "one", LONE), "Unicode"),
    ("edit", edit("text.txt", "absent"), "not found"),
    ("edit", edit("text.txt", "e"), "times"),
    ("edit", edit("text.txt", "x" * EDIT_FILE_BYTES_MAX), "not found"),
    ("edit", edit("text.txt", "one", "y" * EDIT_FILE_BYTES_MAX), "too large"),
    ("edit", edit("as.txt", "a", "b" * 1_000_000, replaceAll=True), "too large"),
    ("edit", edit("text.txt", replaceAll="yes"), "Invalid tool input"),
    ("edit", edit("folder"), "regular file"),
    ("edit", edit("latin.txt"), "UTF-8"),
    ("edit", edit("huge"), "too large"),
]
PATCH: list[Row] = [
    ("apply_patch", {}, "Invalid tool input"),
    ("apply_patch", {"patchText": ""}, "Invalid tool input"),
    ("apply_patch", {"patchText": "nonsense"}, "malformed"),
    ("apply_patch", {"patchText": "*** Begin Patch"}, "malformed"),
    ("apply_patch", {"patchText": LONE}, "Unicode"),
    ("apply_patch", {"patchText": "x" * (PATCH_BYTES_MAX + 1)}, "too large"),
    ("apply_patch", patch(), "no file"),
    ("apply_patch", patch("*** Add File: "), "malformed"),
    ("apply_patch", patch("*** Add File: a\0b", "+x"), "NUL"),
    ("apply_patch", patch("*** Add File: " + "x" * 5_000, "+x"), "longer than"),
    ("apply_patch", patch("*** Add File: ../outside/x", "+x"), "outside the project"),
    ("apply_patch", patch("*** Add File: way_out/x", "+x"), "outside the project"),
    ("apply_patch", patch("*** Add File: text.txt", "+x"), "exists already"),
    ("apply_patch", patch("*** Add File: loop/x", "+x"), "links to itself"),
    ("apply_patch", patch("*** Delete File: folder"), "directory"),
    ("apply_patch", patch("*** Delete File: gone"), "no such file"),
    ("apply_patch", patch("*** Delete File: way_out/secret"), "outside the project"),
    ("apply_patch", patch("*** Update File: text.txt"), "malformed"),
    ("apply_patch", patch("*** Update File: text.txt", "@@", "-absent", "+x"), "does not fit"),
    ("apply_patch", patch("*** Update File: huge", "@@", "+x"), "too large"),
    ("apply_patch", patch("*** Update File: latin.txt", "@@", "+x"), "UTF-8"),
    (
        "apply_patch",
        patch("*** Update File: text.txt", "*** Move to: ../outside/t", "@@", "-one", "+1"),
        "outside the project",
    ),
    ("apply_patch", patch("*** Delete File: text.txt", "*** Delete File: ./text.txt"), "twice"),
    ("apply_patch", patch(*["*** Delete File: a"] * 1_000), "at most"),
]
GLOB: list[Row] = [
    ("glob", {}, "Invalid tool input"),
    ("glob", {"pattern": ""}, "Invalid tool input"),
    ("glob", {"pattern": "a\0"}, "NUL"),
    ("glob", {"pattern": LONE}, "Unicode"),
    ("glob", {"pattern": "x" * (SEARCH_PATTERN_CHARS_MAX + 1)}, "longer than"),
    ("glob", {"pattern": "{a,b}" * 10}, "alternatives"),
    ("glob", {"pattern": "../*"}, "not relative"),
    ("glob", {"pattern": "/etc/*"}, "not relative"),
    ("glob", {"pattern": "[z-a]"}, "Invalid pattern"),
    ("glob", {"pattern": "*", "path": "text.txt"}, "not a directory"),
    ("glob", {"pattern": "*", "path": "gone"}, "no such file"),
    ("glob", {"pattern": "*", "path": "way_out"}, "outside the project"),
    ("glob", {"pattern": "*", "limit": 0}, "Invalid tool input"),
    ("glob", {"pattern": "*", "limit": 10**9}, "Invalid tool input"),
]
GREP: list[Row] = [
    ("grep", {}, "Invalid tool input"),
    ("grep", {"pattern": ""}, "Invalid tool input"),
    ("grep", {"pattern": "a\0"}, "NUL"),
    ("grep", {"pattern": LONE}, "Unicode"),
    ("grep", {"pattern": "x" * (SEARCH_PATTERN_CHARS_MAX + 1)}, "longer than"),
    ("grep", {"pattern": "("}, "Invalid search pattern"),
    ("grep", {"pattern": "a{99999999999}"}, "Invalid search pattern"),
    ("grep", {"pattern": "[[:nope:"}, "Invalid search pattern"),
    ("grep", {"pattern": "(" * 1_000}, "Invalid search pattern"),
    ("grep", {"pattern": "one", "include": "../*"}, "not relative"),
    ("grep", {"pattern": "one", "include": LONE}, "Unicode"),
    ("grep", {"pattern": "one", "path": "gone"}, "no such file"),
    ("grep", {"pattern": "one", "limit": -1}, "Invalid tool input"),
]
TABLE = rows()


def prepare(bench: ToolBench) -> None:
    bench.write(
        {
            "text.txt": "one\ntwo\nthree\n",
            "as.txt": "a" * 10_000,
            "folder/x": "",
            "binary": b"\0\1\2",
            "latin.txt": b"caf\xe9",
            "document.pdf": b"%PDF-1.7",
        }
    )
    (bench.outside / "secret").write_text("one secret\n")
    (bench.root / "way_out").symlink_to(bench.outside)
    (bench.root / "loop").symlink_to("loop")
    with (bench.root / "huge").open("wb") as file:
        file.truncate(EDIT_FILE_BYTES_MAX + 1)
    os.mkfifo(bench.root / "pipe")


def state(directory: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        small = path.is_file() and not path.is_symlink() and status.st_size < 100_000
        data = path.read_bytes() if small else status.st_size
        found[str(path.relative_to(directory))] = (status.st_mode, data)
    return found


def test_the_table_is_long_enough() -> None:
    assert len(TABLE) >= 60


@requirement("S166", "S170", "S175", "S180")
@pytest.mark.parametrize(
    ("name", "input", "told"), TABLE, ids=[f"{n}-{row[0]}-{row[2]}" for n, row in enumerate(TABLE)]
)
async def test_bad_input_is_told_and_changes_nothing(
    bench: ToolBench, name: str, input: JsonObject, told: str
) -> None:
    prepare(bench)
    before = (state(bench.root), state(bench.outside))
    async with asyncio.timeout(10):
        message = await bench.error(name, **input)
    assert told in message
    assert len(message) < 10_000
    assert "secret" not in message or "secret" in str(input)
    assert (state(bench.root), state(bench.outside)) == before
