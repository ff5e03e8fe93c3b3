"""What counts as a skill, what an index from the network may say, and what a reference is."""

import pytest
from msgspec import UNSET

from perdure.core import limits
from perdure.core.settings import reference
from perdure.core.settings.reference import ReferenceEntryError
from perdure.core.skills import index as skill_index
from perdure.core.skills import skill
from perdure.core.skills.index import SkillIndexError
from perdure.core.skills.skill import SkillError
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.settings.reference import GitReference, LocalReference
from perdure.schema.settings.skill import SkillInfo


def test_a_skill_has_the_name_of_its_front_matter_else_of_its_place() -> None:
    text = b"---\nname: tea\ndescription: |\n  How to\n  make tea.\nslash: true\n---\n\n# Boil\n"
    assert skill.read("/s/x.md", text, name="x") == SkillInfo(
        name="tea",
        location="/s/x.md",
        content="# Boil",
        description="How to\nmake tea.",
        slash=True,
    )
    assert skill.read("/s/x.md", b"Just text.", name="x") == SkillInfo(
        name="x", location="/s/x.md", content="Just text."
    )


def test_keys_of_another_kind_are_no_reason_to_refuse_a_skill() -> None:
    found = skill.read("/x.md", b"---\ndescription: [a]\nslash: often\nx: 1\n---\nText", name="x")
    assert (found.description, found.slash) == (UNSET, UNSET)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no text"),
        (b" \n\t\n", "no text"),
        (b"---\nname: a\n---\n\n", "no text"),
        (b"\xff\xfe\x00a", "not UTF-8"),
        (b"a\0b", "not text"),
        (b"---\na: 1\n   b\nc\n---\nText", "line 4"),
        (b"---\ndescription: a\n---\nText", "no name"),
        (b"---\nname: [a]\n---\nText", "must be a text"),
        (b"---\nname: 12\n---\nText", "must be a text"),
        (b"---\nname: ' '\n---\nText", "characters"),
        (b"---\nname: " + b"a" * 200 + b"\n---\nText", "characters"),
        (b'---\nname: "a\\nb"\n---\nText', "one line"),
        (b"---\nname: a*\n---\nText", "one line"),
    ],
)
def test_a_file_that_is_no_skill_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(SkillError, match=reason):
        skill.read("/s/SKILL.md", data, name=None)


def index(*skills: JsonValue) -> skill_index.SkillIndex:
    return skill_index.read(codec.encode({"skills": list(skills)}))


def offered(name: str = "tea", *files: str, **more: JsonValue) -> JsonObject:
    return {"name": name, "files": list(files or ("SKILL.md",)), **more}


def test_an_index_names_skills_with_their_versions_and_files() -> None:
    found = index(
        offered("tea", "SKILL.md", "a b/ü.txt", "SKILL.md", version="2"),
        offered("toast", "toast.md", version=3),
        offered("soup"),
    )
    assert found.refused == ()
    assert [(item.name, item.version, item.files) for item in found.skills] == [
        ("tea", "2", ("SKILL.md", "a b/ü.txt")),
        ("toast", "3", ("toast.md",)),
        ("soup", None, ("SKILL.md",)),
    ]
    url = skill_index.file_url("https://example.org/skills", found.skills[0], "a b/ü.txt")
    assert url == "https://example.org/skills/tea/a%20b/%C3%BC.txt"


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "a/b",
        "a\\b",
        "/a",
        ".hidden",
        "a\x00",
        "a\nb",
        "a?b",
        "a#b",
        "%2e%2e",
        "C:",
        "*",
        "n" * 129,
        " a",
        "\x1b[2J",
    ],
)
def test_a_name_that_could_lead_elsewhere_is_refused_and_the_others_stay(name: str) -> None:
    found = index(offered(name, "SKILL.md"), offered("good"))
    assert [item.name for item in found.skills] == ["good"]
    assert len(found.refused) == 1


@pytest.mark.parametrize(
    "file",
    [
        "/etc/passwd",
        "../up",
        "a/../../up",
        "a/./b",
        "a//b",
        "a/",
        "",
        "a\\b",
        "a\x00b",
        "a?b",
        "a#b",
        "%2e%2e/up",
        "a/%2fb",
        "..%5cup",
        "https://evil.example/x",
        "//evil.example/x",
        "C:/x",
        "x" * 300,
        "a/" * 20 + "b",
    ],
)
def test_a_file_that_could_lie_elsewhere_is_refused_with_its_skill(file: str) -> None:
    found = index(offered("bad", "SKILL.md", file), offered("good"))
    assert [item.name for item in found.skills] == ["good"]
    assert "cannot be one of its files" in found.refused[0]


@pytest.mark.parametrize(
    "item",
    [
        offered("tea", "readme.md"),
        {"name": "tea"},
        {"name": 1, "files": ["SKILL.md"]},
        {"name": "tea", "files": "SKILL.md"},
        offered("tea", *(f"{n}.md" for n in range(limits.SKILL_DOWNLOAD_FILES_MAX)), "SKILL.md"),
    ],
)
def test_a_skill_without_its_text_or_of_another_shape_is_refused(item: JsonObject) -> None:
    found = index(item, offered("good"))
    assert [entry.name for entry in found.skills] == ["good"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"<html>",
        b"{}",
        b'{"skills": {}}',
        b'{"skills": [1]}',
        b"\xff",
        b'{"skills":[',
        codec.encode({"skills": [offered()] * (limits.SKILLS_MAX + 1)}),
    ],
)
def test_what_is_no_index_is_refused_as_a_whole(data: bytes) -> None:
    with pytest.raises(SkillIndexError, match="not an index"):
        skill_index.read(data)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a/b",
        "https://",
        "https://a/b?x=1",
        "https://a/b#c",
        "https://ada:key@a/b",
        "https://a:99999/b",
        "https://[::1",
        "http://a:0/",
    ],
)
def test_an_address_that_cannot_have_an_index_is_refused(url: str) -> None:
    with pytest.raises(SkillIndexError):
        skill_index.base_url(url)


def test_a_slash_at_the_end_of_an_address_makes_no_difference() -> None:
    base = skill_index.base_url("https://example.org/skills/")
    assert skill_index.index_url(base) == "https://example.org/skills/index.json"


@pytest.mark.parametrize("path", ["./docs", "../docs", ".", "/srv/docs", "~/docs", "~"])
def test_a_reference_that_looks_like_a_path_is_one(path: str) -> None:
    assert reference.read("docs", path).source == LocalReference(path=path)


@pytest.mark.parametrize(
    ("repository", "directory"),
    [
        ("ada/notes", "github.com/ada/notes"),
        ("github.com/ada/notes", "github.com/ada/notes"),
        ("https://Example.org:8443/ada/deep/notes.git", "example.org/ada/deep/notes"),
        ("ssh://git@example.org/ada/notes", "example.org/ada/notes"),
        ("git@example.org:ada/notes.git", "example.org/ada/notes"),
    ],
)
def test_the_copy_of_a_repository_lies_where_its_name_says(repository: str, directory: str) -> None:
    source = reference.read("notes", repository).source
    assert isinstance(source, GitReference)
    assert reference.repository_directory(source) == directory
    branched = GitReference(repository=repository, branch="feature/../x")
    assert reference.repository_directory(branched) == f"{directory}@feature%2F..%2Fx"


def test_a_reference_may_say_more_about_itself() -> None:
    written = {"path": "docs", "description": "The handbook.", "hidden": True, "other": 1}
    assert reference.read("docs", written, directory="/p").source == LocalReference(
        path="docs", description="The handbook.", hidden=True
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a/b", "./x"),
        ("a b", "./x"),
        ("a`b", "./x"),
        ("a,b", "./x"),
        ("", "./x"),
        ("a\x1b", "./x"),
        ("a", 1),
        ("a", []),
        ("a", ""),
        ("a", {}),
        ("a", {"path": ""}),
        ("a", {"path": 1}),
        ("a", {"path": "x", "repository": "a/b"}),
        ("a", {"path": "x\0"}),
        ("a", "justaword"),
        ("a", "owner/.."),
        ("a", "https://example.org/../../etc"),
        ("a", "https://ada:key@example.org/a/b"),
        ("a", "owner/na me"),
    ],
)
def test_what_cannot_be_a_reference_is_refused(name: str, value: JsonValue) -> None:
    with pytest.raises(ReferenceEntryError) as refused:
        reference.read(name, value)
    assert "key" not in str(refused.value)
