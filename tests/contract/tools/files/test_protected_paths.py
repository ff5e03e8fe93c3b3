"""Files that govern an agent are changed only when a person says so, each time."""

import pytest

from perdure.ports import PermissionBlockedError
from tests.contract.tools.tool_bench import ToolBench
from tests.requirements import requirement

PROTECTED = (
    "opencode.json",
    "opencode.jsonc",
    "packages/web/opencode.json",
    ".opencode/agents/build.md",
    ".opencode/plugin.js",
    ".git/config",
    ".git/hooks/pre-commit",
    "vendor/lib/.git",
    "OpenCode.JSON",
    ".Git/config",
    ".g\u200cit/config",
)


@pytest.mark.parametrize("path", PROTECTED)
async def test_a_protected_file_has_a_request_of_its_own_that_is_never_remembered(
    bench: ToolBench, path: str
) -> None:
    await bench.success("write", path=path, content="x")
    (ask,) = bench.desk.asked
    assert (ask.action, ask.resources, ask.save) == ("edit", (path,), ())
    assert ask.metadata == {"protected": True}
    assert ask.protected


@pytest.mark.parametrize(
    "path",
    [".opencode/plans/next.md", ".gitignore", ".github/x.yml", "opencode.json.md", "git/config"],
)
async def test_names_that_only_look_alike_are_ordinary(bench: ToolBench, path: str) -> None:
    await bench.success("write", path=path, content="x")
    (ask,) = bench.desk.asked
    assert (ask.save, ask.protected) == (("*",), False)


async def test_a_link_does_not_hide_what_is_protected(bench: ToolBench) -> None:
    bench.write({".git/config": "[core]\n"})
    (bench.root / "harmless.txt").symlink_to(".git/config")
    await bench.success("edit", path="harmless.txt", oldString="core", newString="kernel")
    (ask,) = bench.desk.asked
    assert (ask.resources, ask.protected) == ((".git/config",), True)


async def test_the_users_configuration_is_protected_before_it_exists(bench: ToolBench) -> None:
    path = str(bench.configuration / "anything.txt")
    await bench.success("write", path=path, content="x")
    assert [ask.action for ask in bench.desk.asked] == ["external_directory", "edit"]
    assert bench.desk.asked[-1].protected


@requirement("S175")
async def test_a_patch_asks_for_protected_files_apart_and_changes_nothing_when_refused(
    bench: ToolBench,
) -> None:
    bench.write({"a.txt": "a\n"})
    patch = "\n".join(
        (
            "*** Begin Patch",
            "*** Update File: a.txt",
            "@@",
            "-a",
            "+b",
            "*** Add File: opencode.json",
            "+{}",
            "*** Update File: a2.txt",
            "*** Move to: .git/hooks/post-commit",
            "*** End Patch",
        )
    )
    bench.write({"a2.txt": "x\n"})

    bench.desk.about_protected = PermissionBlockedError("not that")
    assert await bench.error("apply_patch", patchText=patch) == "not that"
    assert bench.desk.questions() == [
        ("edit", ("a.txt", "a2.txt")),
        ("edit", ("opencode.json", ".git/hooks/post-commit")),
    ]
    assert (bench.root / "a.txt").read_text() == "a\n"
    assert not (bench.root / "opencode.json").exists()


@pytest.mark.parametrize("name", ["perdure.db", "server-password", "new/file", "tool-output/x"])
async def test_our_own_data_is_never_written(bench: ToolBench, name: str) -> None:
    bench.data.mkdir()
    (bench.data / "server-password").write_text("secret")
    path = str(bench.data / name)
    calls = [
        bench.error("write", path=path, content="x"),
        bench.error("edit", path=path, oldString="secret", newString="x"),
        bench.error(
            "apply_patch", patchText=f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"
        ),
    ]
    for call in calls:
        assert "belongs to this program" in await call
    assert bench.desk.asked == []
    assert (bench.data / "server-password").read_text() == "secret"


async def test_a_link_in_the_project_does_not_lead_to_our_data(bench: ToolBench) -> None:
    bench.data.mkdir()
    (bench.root / "d").symlink_to(bench.data)
    assert "outside the project" in await bench.error("write", path="d/x", content="x")
    assert list(bench.data.iterdir()) == []
