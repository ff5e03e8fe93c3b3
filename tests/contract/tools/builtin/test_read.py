"""read: files, pages, images and directories."""

import os
from pathlib import Path

import pytest

from perdure.core.limits import READ_BYTES_MAX
from perdure.ports import PermissionBlockedError
from tests.contract.tools.tool_bench import ToolBench
from tests.requirements import requirement


@requirement("S170", "S178", "S180")
async def test_a_small_file_comes_whole(bench: ToolBench) -> None:
    bench.write({"hello.txt": "line 1\nline 2\n"})
    success = await bench.success("read", path="hello.txt")
    assert success.structured == {
        "uri": (bench.root / "hello.txt").as_uri(),
        "name": "hello.txt",
        "content": "line 1\nline 2\n",
        "encoding": "utf8",
        "mime": "text/plain",
    }
    assert success.content == ()
    (ask,) = bench.desk.asked
    assert (ask.action, ask.resources, ask.save) == ("read", ("hello.txt",), ("*",))
    assert ask.source is not None
    assert ask.source.call_id == "call_1"


@pytest.mark.parametrize(
    ("name", "mime"),
    [("a.py", "text/x-python"), ("a.json", "application/json"), ("a.ts", "text/plain")],
)
async def test_the_kind_of_text_is_named(bench: ToolBench, name: str, mime: str) -> None:
    bench.write({name: "1"})
    assert (await bench.structured("read", path=name))["mime"] == mime


async def test_an_empty_file_is_empty_text(bench: ToolBench) -> None:
    bench.write({"empty": ""})
    assert (await bench.structured("read", path="empty"))["content"] == ""
    assert (await bench.structured("read", path="empty", offset=1))["content"] == ""


async def test_a_byte_order_mark_is_not_shown(bench: ToolBench) -> None:
    bench.write({"a.txt": "\ufefftext"})
    assert (await bench.structured("read", path="a.txt"))["content"] == "text"
    assert (await bench.structured("read", path="a.txt", offset=1))["content"] == "text"


@requirement("S170")
async def test_part_of_a_file_comes_as_a_page(bench: ToolBench) -> None:
    bench.write({"a.txt": "1\r\n2\r\n3\r\n4"})
    page = await bench.structured("read", path="a.txt", offset=2, limit=2)
    assert page == {
        "type": "text-page",
        "content": "2\n3",
        "mime": "text/plain",
        "offset": 2,
        "truncated": True,
        "next": 4,
    }
    page = await bench.structured("read", path="a.txt", offset=4)
    assert (page["content"], page["truncated"]) == ("4", False)
    assert "next" not in page


@requirement("S170")
async def test_a_large_file_can_be_read_to_its_end_page_by_page(bench: ToolBench) -> None:
    lines = [f"{number} é" for number in range(300_000)]
    bench.write({"large.txt": "\n".join(lines)})
    page = await bench.structured("read", path="large.txt")
    assert len(page["content"].encode()) <= READ_BYTES_MAX
    assert page["next"] == 2_001
    last = await bench.structured("read", path="large.txt", offset=299_999)
    assert last["content"].split("\n") == lines[-2:]
    assert last["truncated"] is False
    message = await bench.error("read", path="large.txt", offset=300_001)
    assert "300000 lines" in message


async def test_wide_lines_fill_a_page_by_bytes_and_are_cut(bench: ToolBench) -> None:
    bench.write({"wide.txt": ("é" * 1_900 + "\n") * 100})
    page = await bench.structured("read", path="wide.txt")
    assert len(page["content"].encode()) <= READ_BYTES_MAX
    assert page["next"] == page["content"].count("\n") + 2
    bench.write({"one.txt": "é" * 3_000_000})
    page = await bench.structured("read", path="one.txt")
    assert page["content"].startswith("é" * 2_000 + "... (line cut")
    assert page["truncated"] is False


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("nul.txt", b"text\0more"),
        ("controls.txt", bytes(range(1, 32)) * 4),
        ("a.pdf", b"%PDF-1.7"),
        ("renamed.txt", b"%PDF-1.7"),
        ("a.zip", b"plain"),
    ],
)
async def test_a_binary_file_is_refused_by_name(bench: ToolBench, name: str, data: bytes) -> None:
    bench.write({name: data})
    assert await bench.error("read", path=name) == f"Cannot read binary file: {name}"


async def test_text_that_is_not_utf8_is_refused(bench: ToolBench) -> None:
    bench.write(
        {"latin.txt": b"caf\xe9 au lait, s'il vous pla\xeet", "cut.txt": b"a\n" * 99 + b"\xe2\x82"}
    )
    for name in ("latin.txt", "cut.txt"):
        assert "not valid UTF-8" in await bench.error("read", path=name)
        assert "not valid UTF-8" in await bench.error("read", path=name, offset=1)


@requirement("S170")
async def test_a_directory_is_listed_in_pages_with_directories_first(bench: ToolBench) -> None:
    bench.write({"d/z/x": "", "d/b.txt": "", "d/a.txt": "", "d/.hidden": ""})
    (bench.root / "d" / os.fsdecode(b"\xff")).touch()
    assert await bench.structured("read", path="d") == {
        "entries": [
            {"path": "z/", "type": "directory"},
            {"path": ".hidden", "type": "file"},
            {"path": "a.txt", "type": "file"},
            {"path": "b.txt", "type": "file"},
            {"path": "\ufffd", "type": "file"},
        ],
        "truncated": False,
    }
    page = await bench.structured("read", path="d", offset=2, limit=2)
    assert [entry["path"] for entry in page["entries"]] == [".hidden", "a.txt"]
    assert (page["truncated"], page["next"]) == (True, 4)
    assert "past the end" in await bench.error("read", path="d", offset=9)


async def test_a_listing_leaves_out_links_that_lead_away(bench: ToolBench) -> None:
    bench.write({"d/a.txt": "", "other/x": ""})
    (bench.root / "d" / "inside").symlink_to(bench.root / "other")
    (bench.root / "d" / "outside").symlink_to(bench.outside)
    (bench.root / "d" / "nowhere").symlink_to(bench.root / "gone")
    listing = await bench.structured("read", path="d")
    assert [entry["path"] for entry in listing["entries"]] == ["inside/", "a.txt"]


async def test_special_files_are_refused_and_never_waited_for(bench: ToolBench) -> None:
    os.mkfifo(bench.root / "pipe")
    assert "not a regular file" in await bench.error("read", path="pipe")
    assert "not a regular file" in await bench.error("read", path="/dev/zero")


async def test_a_missing_file_is_named_before_anybody_is_asked(bench: ToolBench) -> None:
    bench.write({"file": ""})
    assert await bench.error("read", path="gone") == (
        "Unable to read gone: no such file or directory"
    )
    assert await bench.error("read", path="file/below") == (
        "Unable to read file/below: not a directory"
    )
    assert bench.desk.asked == []


async def test_a_rule_that_says_no_is_passed_on(bench: ToolBench) -> None:
    bench.write({".env": "SECRET=1"})
    bench.desk.answers["read"] = PermissionBlockedError("denied by rule: read .env")
    assert await bench.error("read", path=".env") == "denied by rule: read .env"


@requirement("S105", "S175")
@pytest.mark.parametrize("path", ["../outside/f", "a/../../outside/f", "link/f", "link"])
async def test_a_relative_path_cannot_leave_the_location(bench: ToolBench, path: str) -> None:
    (bench.outside / "f").write_text("secret")
    (bench.root / "link").symlink_to(bench.outside)
    message = await bench.error("read", path=path)
    assert "outside the project" in message
    assert bench.desk.asked == []


@requirement("S175", "S178")
async def test_an_absolute_path_outside_is_approved_by_directory_first(bench: ToolBench) -> None:
    file = bench.outside / "f"
    file.write_text("text")
    structured = await bench.structured("read", path=str(file))
    assert structured["content"] == "text"
    assert bench.desk.questions() == [
        ("external_directory", (f"{bench.outside}/*",)),
        ("read", (str(file),)),
    ]
    assert bench.desk.asked[0].save == (f"{bench.outside}/*",)


@requirement("S175")
async def test_absolute_paths_inside_are_as_good_as_relative_ones(
    bench: ToolBench, tmp_path: Path
) -> None:
    bench.write({"a.txt": "text"})
    (tmp_path / "alias").symlink_to(bench.root)
    for path in (
        str(bench.root / "a.txt"),
        f"/{bench.root}/./a.txt",
        str(tmp_path / "alias/a.txt"),
    ):
        assert (await bench.structured("read", path=path))["content"] == "text"
    assert bench.desk.questions() == [("read", ("a.txt",))] * 3


@pytest.mark.parametrize(
    "input", [{"path": ""}, {"path": "a", "limit": 2_001}, {"path": "a", "offset": 0}]
)
async def test_input_out_of_bounds_is_refused(bench: ToolBench, input: dict[str, object]) -> None:
    assert (await bench.error("read", **input)).startswith("Invalid tool input")


async def test_a_path_with_a_nul_is_refused(bench: ToolBench) -> None:
    assert "NUL" in await bench.error("read", path="a\0b")
