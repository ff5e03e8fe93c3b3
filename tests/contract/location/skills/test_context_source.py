"""What the model is told of skills and references: to whom, in which words, and when again."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.context import system_context
from perdure.core.context.system_context import (
    Generation,
    Observation,
    Snapshot,
    Unchanged,
    Updated,
)
from perdure.host.clock import SystemClock
from perdure.location import factory
from perdure.location.context.registry import Subject
from perdure.location.location import Location
from perdure.location.project import references
from perdure.location.skills import context_source
from perdure.location.skills.files import SkillFiles
from perdure.location.skills.skills import Skills
from perdure.schema.approval.permission import Rule, Ruleset
from perdure.schema.models.model import ModelRef
from tests.contract.location.opened_location import LocationFolders, nobody_may_look
from tests.fixtures import SESSION
from tests.requirements import requirement


def agent(*rules: Rule) -> Ruleset:
    return (Rule("*", "*", "allow"), *rules)


def deny(name: str) -> Rule:
    return Rule("skill", name, "deny")


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    directory = tmp_path / "shelf"
    directory.mkdir()
    return directory


@pytest.fixture
def skills(shelf: Path) -> Skills:
    return Skills([SkillFiles(str(shelf), clock=SystemClock())])


def put(shelf: Path, name: str, description: str | None = "For it.") -> Path:
    said = "" if description is None else f"description: {description}\n"
    path = shelf / f"{name}.md"
    path.write_text(f"---\nname: {name}\n{said}---\nThe secret text of {name}.\n")
    return path


def begun(observation: Observation) -> Generation:
    generation = system_context.initialize(observation)
    assert isinstance(generation, Generation)
    return generation


def told_again(observation: Observation, before: Snapshot) -> Updated:
    updated = system_context.reconcile(observation, before)
    assert isinstance(updated, Updated)
    return updated


INTRO = (
    "Skills are instructions that were written for particular kinds of tasks.\n"
    "When a task fits the description of a skill, load it with the `skill` tool first.\n"
)


@requirement("S84")
def test_names_and_descriptions_are_told_in_order_and_neither_texts_nor_places(
    shelf: Path, skills: Skills
) -> None:
    put(shelf, "toast", "Make toast.")
    put(shelf, "tea", "Make: tea & <milk>.")
    put(shelf, "quiet", None)
    assert begun(context_source.observe(skills, agent())).baseline == (
        f"{INTRO}"
        "<available_skills>\n"
        "  <skill>\n"
        "    <name>tea</name>\n"
        "    <description>Make: tea &amp; &lt;milk&gt;.</description>\n"
        "  </skill>\n"
        "  <skill>\n"
        "    <name>toast</name>\n"
        "    <description>Make toast.</description>\n"
        "  </skill>\n"
        "</available_skills>"
    )


@requirement("S84")
def test_what_is_compared_is_names_and_descriptions(shelf: Path, skills: Skills) -> None:
    put(shelf, "tea", "Make tea.")
    (observed,) = context_source.observe(skills, agent())
    assert (observed.key, observed.encoded) == (
        "core/skill-guidance",
        [{"name": "tea", "description": "Make tea."}],
    )


@requirement("S84")
def test_skills_that_the_agent_may_not_use_are_not_told(shelf: Path, skills: Skills) -> None:
    for name in ("tea", "toast", "secret-one", "secret-two"):
        put(shelf, name)
    asks = Rule("skill", "toast", "ask")
    baseline = begun(context_source.observe(skills, agent(deny("secret-*"), asks))).baseline
    assert "<name>tea</name>" in baseline
    assert "<name>toast</name>" in baseline
    assert "secret" not in baseline


@requirement("S84")
def test_an_agent_that_may_use_no_skill_hears_nothing_of_them(shelf: Path, skills: Skills) -> None:
    put(shelf, "tea")
    assert context_source.observe(skills, agent(deny("*"))) == ()
    assert context_source.observe(skills, None) == ()
    one = agent(deny("*"), Rule("skill", "tea", "allow"))
    assert "<name>tea</name>" in begun(context_source.observe(skills, one)).baseline


def test_an_agent_that_could_use_skills_is_told_when_there_are_none(
    shelf: Path, skills: Skills
) -> None:
    assert begun(context_source.observe(skills, agent())).baseline == (
        f"{INTRO}No skills are available."
    )
    put(shelf, "tea")
    assert begun(context_source.observe(skills, agent(deny("tea")))).baseline == (
        f"{INTRO}No skills are available."
    )


@requirement("S84")
def test_a_change_is_told_with_the_whole_list_and_the_end_with_a_sentence(
    shelf: Path, skills: Skills
) -> None:
    put(shelf, "tea", "Make tea.")
    first = begun(context_source.observe(skills, agent()))
    put(shelf, "toast", "Make toast.")
    second = told_again(context_source.observe(skills, agent()), first.snapshot)
    assert second.text.startswith(
        "The available skills have changed. This list supersedes the earlier one.\n" + INTRO
    )
    assert second.text.count("<skill>") == 2
    third = told_again(context_source.observe(skills, agent(deny("*"))), second.snapshot)
    assert third.text == (
        "Skills are not available any more. The list given before no longer applies."
    )


def test_a_new_text_of_a_skill_is_nothing_to_tell(shelf: Path, skills: Skills) -> None:
    path = put(shelf, "tea")
    first = begun(context_source.observe(skills, agent()))
    path.write_text(path.read_text() + "More.")
    again = system_context.reconcile(context_source.observe(skills, agent()), first.snapshot)
    assert isinstance(again, Unchanged)


def test_a_long_description_is_cut(shelf: Path, skills: Skills) -> None:
    put(shelf, "tea", "tea " * 10_000)
    (observed,) = context_source.observe(skills, agent())
    (summary,) = observed.encoded
    assert len(summary["description"]) == limits.CONTEXT_DESCRIPTION_CHARS_MAX


@requirement("S44")
def test_skills_that_could_not_be_looked_at_are_not_told_to_be_gone(
    shelf: Path, skills: Skills
) -> None:
    put(shelf, "tea")
    first = begun(context_source.observe(skills, agent()))
    after_a_restart = Skills([SkillFiles(str(shelf), clock=SystemClock())])
    with nobody_may_look(shelf):
        for found in (skills, after_a_restart):
            observation = context_source.observe(found, agent(), listed_before=True)
            assert isinstance(system_context.reconcile(observation, first.snapshot), Unchanged)
        # A Session that was told of no skill need not wait for the disk.
        fresh = begun(context_source.observe(after_a_restart, agent()))
    assert fresh.baseline.endswith("No skills are available.")
    again = context_source.observe(after_a_restart, agent(), listed_before=True)
    assert isinstance(system_context.reconcile(again, first.snapshot), Unchanged)


@requirement("S84", "S39")
async def test_guidance_stands_between_the_location_and_the_model(folders: LocationFolders) -> None:
    folders.write(
        folders.project / ".opencode" / "skills" / "tea.md", "---\ndescription: T.\n---\nBoil"
    )
    folders.configure({"references": {"docs": {"path": "docs", "description": "The handbook."}}})
    folders.write(folders.project / "AGENTS.md", "Be kind.")
    opened = factory.open_location(folders.ref, folders.host())
    build = opened.agents.get("build")
    assert build is not None
    subject = Subject(session_id=SESSION, agent=build, model=ModelRef(id="m", provider_id="p"))
    assert [observed.key for observed in await opened.observe(subject)] == [
        "core/environment",
        "core/date",
        "core/instructions",
        "core/skill-guidance",
        "core/reference-guidance",
        "core/model",
    ]
    nobody = replace(subject, agent=None)
    assert "core/skill-guidance" not in {seen.key for seen in await opened.observe(nobody)}


def opened_with(folders: LocationFolders, **configured: object) -> Location:
    folders.configure({"references": configured})
    return factory.open_location(folders.ref, folders.host())


def test_local_references_are_resolved_from_the_document_that_names_them(
    folders: LocationFolders,
) -> None:
    folders.write(
        folders.project / ".opencode" / "opencode.json",
        {"references": {"near": "../near", "b": "./b"}},
    )
    folders.configure_user({"references": {"mine": "~/mine", "near": "/elsewhere"}})
    opened = opened_with(folders, far={"path": "/srv/far", "hidden": True})
    assert [(info.name, info.path) for info in opened.references.list()] == [
        ("b", str(folders.project / ".opencode" / "b")),
        ("far", "/srv/far"),
        ("mine", str(folders.home / "mine")),
        ("near", str(folders.project / "near")),
    ]


def test_a_repository_is_listed_once_its_copy_is_there(folders: LocationFolders) -> None:
    opened = opened_with(folders, notes={"repository": "ada/notes", "description": "Notes."})
    assert opened.references.list() == ()
    assert references.observe(opened.references) == ()
    copy = Path(folders.environment.data_dir) / "repos" / "github.com" / "ada" / "notes"
    copy.mkdir(parents=True)
    (info,) = opened.references.list()
    assert info.path == str(copy)
    assert "Notes." in begun(references.observe(opened.references)).baseline


@requirement("S84")
def test_references_with_a_description_are_told_and_supersede_each_other(
    folders: LocationFolders,
) -> None:
    docs = {"path": "/srv/docs", "description": "The\n handbook."}
    first = begun(
        references.observe(opened_with(folders, docs=docs, other="/srv/other").references)
    )
    assert first.baseline == (
        "References are directories outside the project that may help with it.\n"
        "Read in one when its description fits the task; do not change anything there.\n"
        "<available_references>\n"
        "  <reference>\n"
        "    <name>docs</name>\n"
        "    <path>/srv/docs</path>\n"
        "    <description>The handbook.</description>\n"
        "  </reference>\n"
        "</available_references>"
    )
    more = opened_with(folders, docs=docs, api={"path": "/srv/api", "description": "The API."})
    second = told_again(references.observe(more.references), first.snapshot)
    assert "supersedes the earlier one" in second.text
    assert second.text.index("<name>api</name>") < second.text.index("<name>docs</name>")
    third = told_again(references.observe(opened_with(folders).references), second.snapshot)
    assert third.text == (
        "References are not available any more. The list given before no longer applies."
    )


def test_a_bad_reference_is_reported_and_the_others_stay(folders: LocationFolders) -> None:
    opened = opened_with(folders, **{"a b": "./x", "good": "./good", "bad": {"path": 1}})
    assert [info.name for info in opened.references.list()] == ["good"]
    problems = " ".join(map(str, opened.settings.problems))
    assert "references" in problems
    assert "bad" in problems
    assert "slash" in problems
