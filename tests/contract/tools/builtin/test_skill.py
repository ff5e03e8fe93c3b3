"""skill: what is loaded, who is asked, and what happens when it is not there."""

from pathlib import Path

import pytest

from perdure.core import limits
from perdure.location.skills.built_in import BuiltInSkills
from perdure.location.skills.context_source import AgentSkills
from perdure.location.skills.skills import Skills
from perdure.ports import PermissionBlockedError
from perdure.schema.approval.permission import Rule
from perdure.tools.api.registry import ToolRegistry, ToolSuccess
from perdure.tools.builtin.skill import make_skill
from tests.contract.tools.tool_bench import CONTEXT, ToolBench, text_of
from tests.requirements import requirement


def put(bench: ToolBench, name: str, text: str, path: str | None = None) -> Path:
    file = bench.skill_files / (path or f"{name}/SKILL.md")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {name}\ndescription: d\n---\n{text}\n")
    return file


@requirement("S89")
async def test_a_skill_comes_with_its_directory_and_the_files_beside_it(bench: ToolBench) -> None:
    base = put(bench, "tea", "# Boil\n\nRun scripts/boil.sh.").parent
    (base / "scripts").mkdir()
    (base / "scripts" / "boil.sh").write_text("true")
    (base / "notes.txt").write_text("x")
    (base / ".git").mkdir()
    (base / ".git" / "HEAD").write_text("x")
    settled = await bench.success("skill", name="tea")
    assert text_of(settled) == (
        '<skill_content name="tea">\n'
        "# Boil\n"
        "\n"
        "Run scripts/boil.sh.\n"
        "\n"
        f"Base directory of this skill: {base}\n"
        "Relative paths in its text begin there.\n"
        "Some of the files beside it:\n"
        "<skill_files>\n"
        f"<file>{base}/notes.txt</file>\n"
        f"<file>{base}/scripts/boil.sh</file>\n"
        "</skill_files>\n"
        "</skill_content>"
    )
    assert settled.structured == {
        "name": "tea",
        "directory": str(base),
        "output": text_of(settled),
    }


@requirement("S89", "S84")
async def test_the_use_of_a_skill_is_asked_by_its_name(bench: ToolBench) -> None:
    put(bench, "tea", "Boil.")
    await bench.success("skill", name="tea")
    assert bench.desk.questions() == [("skill", ("tea",))]
    assert bench.desk.asked[0].save == ("tea",)


@requirement("S84", "S89")
async def test_nothing_of_a_skill_is_told_without_permission(bench: ToolBench) -> None:
    put(bench, "tea", "The secret text.")
    bench.desk.answers["skill"] = PermissionBlockedError("skill tea is denied")
    assert await bench.error("skill", name="tea") == "skill tea is denied"


@requirement("S89")
async def test_the_list_of_files_is_short_sorted_and_stays_inside(
    bench: ToolBench, tmp_path: Path
) -> None:
    base = put(bench, "tea", "Boil.").parent
    for number in range(200):
        (base / f"{number:03}.txt").write_text("x")
    assert (await bench.text("skill", name="tea")).count("<file>") == limits.SKILL_FILES_SHOWN_MAX
    for number in range(200):
        (base / f"{number:03}.txt").unlink()
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "diary.txt").write_text("x")
    (base / "out").symlink_to(tmp_path / "private")
    (base / "round").symlink_to(base)
    (base / "a&b<c>.txt").write_text("x")
    text = await bench.text("skill", name="tea")
    assert "diary" not in text
    assert f"<file>{base}/a&amp;b&lt;c&gt;.txt</file>" in text


async def test_a_deep_tree_is_not_walked_to_its_end(bench: ToolBench) -> None:
    base = put(bench, "tea", "Boil.").parent
    for number in range(limits.SKILL_SHOWN_DIRECTORIES_MAX * 2):
        (base / f"{number:04}").mkdir()
    (base / "9999").mkdir()
    (base / "9999" / "last.txt").write_text("x")
    assert "last.txt" not in await bench.text("skill", name="tea")


async def test_a_skill_in_a_single_file_has_no_files_beside_it(bench: ToolBench) -> None:
    put(bench, "tea", "Boil.", "tea.md")
    put(bench, "toast", "Toast.", "toast.md")
    text = await bench.text("skill", name="tea")
    assert "<skill_files>" not in text
    assert f"Base directory of this skill: {bench.skill_files}" in text


async def test_the_built_in_skill_has_no_directory(bench: ToolBench) -> None:
    registry = ToolRegistry()
    shelf = AgentSkills(Skills([BuiltInSkills()]), lambda agent: ())
    with registry.register(make_skill(bench.environment, shelf)):
        offered = registry.materialize(())
        settled = await offered.settle("skill", {"name": "configure-perdure"}, CONTEXT)
    assert isinstance(settled, ToolSuccess)
    assert "directory" not in settled.structured
    assert "opencode.json" in text_of(settled)


@requirement("S90")
async def test_a_skill_is_looked_up_when_it_is_used(bench: ToolBench) -> None:
    offered = bench.registry.materialize(())
    file = put(bench, "tea", "Boil.")
    file.write_text(file.read_text().replace("Boil.", "Brew."))
    settled = await offered.settle("skill", {"name": "tea"}, CONTEXT)
    assert isinstance(settled, ToolSuccess)
    assert "Brew." in text_of(settled)


@requirement("S90")
async def test_what_happens_to_a_skill_while_a_person_decides_counts(bench: ToolBench) -> None:
    file = put(bench, "tea", "Boil.")
    bench.desk.meanwhile = lambda: file.write_text(file.read_text().replace("Boil.", "Brew."))
    assert "Brew." in await bench.text("skill", name="tea")
    bench.desk.meanwhile = file.unlink
    assert await bench.error("skill", name="tea") == "There is no skill 'tea'."


async def test_an_unknown_name_is_answered_with_close_ones_and_asks_nobody(
    bench: ToolBench,
) -> None:
    for name in ("make-tea", "make-toast", "unrelated"):
        put(bench, name, "Text.")
    assert await bench.error("skill", name="make_tea") == (
        "There is no skill 'make_tea'. Did you mean 'make-tea' or 'make-toast'?"
    )
    assert await bench.error("skill", name="zzz") == "There is no skill 'zzz'."
    assert bench.desk.asked == []


@requirement("S84")
async def test_names_that_the_agent_may_not_use_are_not_suggested(bench: ToolBench) -> None:
    put(bench, "make-tea", "Text.")
    bench.rules = (Rule("*", "*", "allow"), Rule("skill", "make-tea", "deny"))
    assert await bench.error("skill", name="make_tea") == "There is no skill 'make_tea'."


@pytest.mark.parametrize("name", ["x" * 1_000_000, "../../etc/passwd", "a\0b", "*"])
async def test_a_hostile_name_is_only_a_name_that_does_not_exist(
    bench: ToolBench, name: str
) -> None:
    put(bench, "tea", "Boil.")
    message = await bench.error("skill", name=name)
    assert message.startswith("There is no skill ")
    assert len(message) < 1_000
    assert bench.desk.asked == []


async def test_a_name_cannot_end_its_tag(bench: ToolBench) -> None:
    put(bench, "'a\"><b'", "Text.")
    assert (await bench.text("skill", name='a"><b')).startswith(
        '<skill_content name="a&quot;&gt;&lt;b">\n'
    )
