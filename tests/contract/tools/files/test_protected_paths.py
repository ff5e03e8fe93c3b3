"""Files that other programs execute or obey are changed only when a person says so."""

import pytest

from perdure.core.approval import protected_paths
from perdure.core.limits import PERMISSION_DIFF_CHARS_MAX
from perdure.ports import PermissionAsk, PermissionBlockedError
from tests.contract.tools.tool_bench import ToolBench
from tests.requirements import requirement

GOVERNING = (
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
OBEYED = tuple(
    entry.pattern.replace("*", "any") + ("x" if entry.pattern.endswith("/") else "")
    for entry in protected_paths.TABLE
    if not entry.governs and not entry.fields
)


def diff_of(ask: PermissionAsk) -> str:
    assert ask.metadata is not None
    diff = ask.metadata["diff"]
    assert isinstance(diff, str)
    return diff


@pytest.mark.parametrize("path", GOVERNING)
async def test_a_file_that_holds_rules_has_a_request_of_its_own_that_is_never_remembered(
    bench: ToolBench, path: str
) -> None:
    await bench.success("write", path=path, content="x")
    (ask,) = bench.desk.asked
    assert (ask.action, ask.resources, ask.save) == ("edit", (path,), ())
    assert ask.metadata is not None
    assert ask.metadata["protected"] is True
    assert ask.protected


@pytest.mark.parametrize("path", OBEYED)
async def test_a_file_that_others_obey_is_asked_about_with_the_difference(
    bench: ToolBench, path: str
) -> None:
    await bench.success("write", path=path, content="obey\n")
    await bench.success("edit", path=path, oldString="obey", newString="rule")
    gone = f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch"
    await bench.success("apply_patch", patchText=gone)
    asked = bench.desk.asked
    assert [(ask.action, ask.resources, ask.save) for ask in asked] == [
        ("edit", (path,), (path,))
    ] * 3
    assert all(ask.protected for ask in asked)
    assert ["+obey" in diff_of(ask) for ask in asked] == [True, False, False]
    assert ["-obey" in diff_of(ask) for ask in asked] == [False, True, False]
    assert "-rule" in diff_of(asked[2])
    assert not (bench.root / path).exists()


@pytest.mark.parametrize("refused", ["write", "edit", "patch", "delete", "move away", "move there"])
@pytest.mark.parametrize("path", ["AGENTS.md", ".envrc", ".github/workflows/ci.yml"])
async def test_a_protected_file_that_is_refused_stays_as_it_was(
    bench: ToolBench, path: str, refused: str
) -> None:
    bench.write({path: "old\n", "plain.txt": "plain\n"})
    await bench.success("read", path=path)
    bench.desk.asked.clear()
    bench.desk.about_protected = PermissionBlockedError("not that")
    target = f"sub/{path}"
    patches = {
        "patch": f"*** Update File: {path}\n@@\n-old\n+new",
        "delete": f"*** Delete File: {path}",
        "move away": f"*** Update File: {path}\n*** Move to: moved.txt",
        "move there": f"*** Update File: plain.txt\n*** Move to: {target}",
    }
    if refused in patches:
        text = f"*** Begin Patch\n{patches[refused]}\n*** End Patch"
        message = await bench.error("apply_patch", patchText=text)
    elif refused == "edit":
        message = await bench.error("edit", path=path, oldString="old", newString="new")
    else:
        message = await bench.error("write", path=path, content="new")
    assert message == "not that"
    assert (bench.root / path).read_text() == "old\n"
    assert (bench.root / "plain.txt").read_text() == "plain\n"
    assert not (bench.root / "moved.txt").exists()
    assert not (bench.root / target).exists()


@pytest.mark.parametrize("tool", ["edit", "apply_patch"])
async def test_what_changed_while_the_person_looked_at_the_difference_is_not_overwritten(
    bench: ToolBench, tool: str
) -> None:
    bench.write({"AGENTS.md": "old\n"})
    path = bench.root / "AGENTS.md"
    bench.desk.meanwhile = lambda: path.write_text("old\nof another\n")
    if tool == "edit":
        message = await bench.error("edit", path="AGENTS.md", oldString="old", newString="new")
    else:
        patch = "*** Begin Patch\n*** Update File: AGENTS.md\n@@\n-old\n+new\n*** End Patch"
        message = await bench.error("apply_patch", patchText=patch)
    assert "has changed since" in message
    assert path.read_text() == "old\nof another\n"


async def test_a_package_is_asked_about_when_its_scripts_change(bench: ToolBench) -> None:
    bench.write({"package.json": '{"version": "1", "scripts": {"a": "b"}}'})
    await bench.success("edit", path="package.json", oldString='"1"', newString='"2"')
    await bench.success("edit", path="package.json", oldString='"b"', newString='"c"')
    assert [(ask.protected, ask.save) for ask in bench.desk.asked] == [
        (False, ("*",)),
        (True, ("package.json",)),
    ]


async def test_a_difference_that_is_too_long_is_cut_and_says_so(bench: ToolBench) -> None:
    lines = "".join(f"line {n} of many\n" for n in range(3_000))
    await bench.success("write", path="AGENTS.md", content=lines)
    (ask,) = bench.desk.asked
    assert len(diff_of(ask)) < PERMISSION_DIFF_CHARS_MAX + 100
    assert diff_of(ask).endswith("more characters)") or "too large to show" in diff_of(ask)


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
    (bench.root / "docs").mkdir()
    (bench.root / "docs/guide.md").symlink_to("../AGENTS.md")
    await bench.success("edit", path="harmless.txt", oldString="core", newString="kernel")
    await bench.success("write", path="docs/guide.md", content="x")
    assert [(ask.resources, ask.protected) for ask in bench.desk.asked] == [
        ((".git/config",), True),
        (("AGENTS.md",), True),
    ]


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
