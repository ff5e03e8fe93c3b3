"""One rule for one file: what `read` and `edit` rules say holds for every tool and spelling."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.host.process.runner import find_ripgrep
from perdure.schema.approval.permission import ApprovalScope, Effect, Rule, Ruleset
from perdure.schema.codec import JsonValue
from perdure.tools.api.registry import ToolSuccess
from tests.contract.tools.ruled_bench import (
    ALLOW_ALL,
    PLACE,
    RuledBench,
    Verdict,
    patch,
    rules,
)

RIPGREP = find_ripgrep()
SECRET: Final = "sesame"
FILE: Final = "secrets/key.txt"
TREE: Final = {
    FILE: f"open {SECRET}\n",
    "secrets/deep/other.txt": f"{SECRET} too\n",
    "notes.md": "nothing\n",
    "prod.env": f"TOKEN={SECRET}\n",
    ".env": f"TOKEN={SECRET}\n",
}
NAMES: Final = (
    *("secrets/*", "secrets", "secrets/", "./secrets/*", "{real}/secrets/*", "{given}/secrets/*"),
    *("{given}/secrets", "linked/*", "linked", "{given}/linked/*", "notes/../secrets/*"),
    *("secr?ts/*", "*ecrets/*", "{real}/*ecrets/*"),
)
"""How a rule may name the folder `secrets`, to which `linked` is a link."""
SPELLINGS: Final = (
    *(FILE, f"./{FILE}", "notes/../secrets/key.txt", "secrets/./deep/../key.txt"),
    *("{real}/secrets/key.txt", "{given}/secrets/key.txt", "//{real}/secrets//key.txt"),
    *("linked/key.txt", "{given}/linked/key.txt", "alias.txt", "{real}/alias.txt"),
)
"""How a model may name the file."""

Inputs = Mapping[str, JsonValue]
ONE_FILE: Final[Mapping[str, Callable[[str], tuple[str, Inputs]]]] = {
    "read": lambda path: ("read", {"path": path}),
    "read a page": lambda path: ("read", {"path": path, "offset": 1, "limit": 1}),
    "grep": lambda path: ("grep", {"path": path, "pattern": "open"}),
    "grep without a match": lambda path: ("grep", {"path": path, "pattern": "zzz"}),
    "edit": lambda path: ("edit", {"path": path, "oldString": "open", "newString": "shut"}),
    "guess by an edit": lambda path: (
        "edit",
        {"path": path, "oldString": "no such words", "newString": "x"},
    ),
    "patch": lambda path: (
        "apply_patch",
        {"patchText": patch(f"*** Update File: {path}", "@@", f"-open {SECRET}", "+shut")},
    ),
    "move by a patch": lambda path: (
        "apply_patch",
        {"patchText": patch(f"*** Update File: {path}", "*** Move to: free.txt")},
    ),
}
MANY_FILES: Final[Mapping[str, tuple[str, Inputs]]] = {
    "grep": ("grep", {"pattern": SECRET}),
    "grep in the folder": ("grep", {"pattern": SECRET, "path": "secrets"}),
    "grep by the link": ("grep", {"pattern": SECRET, "path": "linked"}),
    "grep with include": ("grep", {"pattern": ".", "include": "**/key.txt"}),
    "grep above": ("grep", {"pattern": SECRET, "path": "{real}"}),
    "glob": ("glob", {"pattern": "*.txt"}),
    "glob with folder": ("glob", {"pattern": "secrets/**"}),
    "glob of everything": ("glob", {"pattern": "**"}),
    "glob in the folder": ("glob", {"pattern": "*", "path": "secrets"}),
    "glob by the link": ("glob", {"pattern": "key*", "path": "{given}/linked"}),
    "list": ("read", {"path": "secrets"}),
    "list by the link": ("read", {"path": "linked"}),
    "list a part": ("read", {"path": "secrets", "offset": 1, "limit": 1}),
}


class Places(RuledBench):
    """A project with a secret, reached through a link as its user names it."""

    def __init__(self, base: Path, agent_rules: Ruleset, *, ripgrep: str | None) -> None:
        self.given = base / "given"
        self.given.symlink_to(base / "project")
        super().__init__(
            base, {"build": self.fill(base, agent_rules)}, given_root=self.given, ripgrep=ripgrep
        )
        self.write(TREE)
        (self.root / "linked").symlink_to("secrets")
        (self.root / "alias.txt").symlink_to(FILE)
        (self.root / "notes").mkdir()

    def fill(self, base: Path, agent_rules: Ruleset) -> Ruleset:
        return tuple(
            Rule(rule.action, self.place(rule.resource, base), rule.effect) for rule in agent_rules
        )

    def place(self, text: str, base: Path) -> str:
        return text.replace("{real}", str(base / "project")).replace("{given}", str(self.given))

    def input(self, given: Inputs) -> dict[str, JsonValue]:
        base = self.root.parent
        return {k: self.place(v, base) if isinstance(v, str) else v for k, v in given.items()}


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[Ruleset], Places]]:
    with ExitStack() as scope:

        def build(agent_rules: Ruleset) -> Places:
            bench = Places(tmp_path, agent_rules, ripgrep=RIPGREP)
            scope.enter_context(bench.open())
            return bench

        yield build


Make = Callable[[Ruleset], Places]


@pytest.mark.parametrize("way", ONE_FILE)
@pytest.mark.parametrize("name", NAMES)
async def test_a_denied_file_is_not_shown_however_the_rule_names_it(
    make: Make, name: str, way: str
) -> None:
    bench = make(rules(f"deny read {name}"))
    tool, given = ONE_FILE[way](FILE)
    assert await bench.verdict(tool, **given) == "deny"
    assert (bench.root / FILE).read_text() == TREE[FILE]


@pytest.mark.parametrize("way", ONE_FILE)
@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_a_denied_file_is_not_shown_however_the_model_names_it(
    make: Make, spelling: str, way: str
) -> None:
    bench = make(rules("deny read secrets/*"))
    tool, given = ONE_FILE[way](spelling)
    assert await bench.verdict(tool, **bench.input(given)) == "deny"


@pytest.mark.parametrize("way", ONE_FILE)
@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_a_file_to_ask_about_is_asked_about_however_it_is_named(
    make: Make, spelling: str, way: str
) -> None:
    bench = make(rules("ask read secrets/*"))
    tool, given = ONE_FILE[way](spelling)
    assert await bench.verdict(tool, **bench.input(given)) == "ask"


@pytest.mark.parametrize("way", MANY_FILES)
@pytest.mark.parametrize("effect", ["deny", "ask"])
@pytest.mark.parametrize("name", ["secrets/*", "{given}/secrets/*", "linked/*", "*/key.txt"])
async def test_a_search_leaves_out_what_may_not_be_read(
    make: Make, name: str, effect: str, way: str
) -> None:
    bench = make(rules(f"{effect} read {name}"))
    tool, given = MANY_FILES[way]
    settled = await bench.call(tool, **bench.input(given))
    said = await bench.said(tool, **bench.input(given))
    assert "open sesame" not in said
    assert isinstance(settled, ToolSuccess)
    named = "key.txt" in said
    assert named is (effect == "ask")
    left_out = settled.structured["omitted"]
    if effect == "deny":
        assert (left_out["denied"] > 0, left_out["needsPermission"]) == (True, [])
    else:
        assert left_out["denied"] == 0
        assert FILE in left_out["needsPermission"]
        assert not any(FILE in str(found) for found in settled.structured.get("entries", []))


async def test_the_number_of_files_left_out_does_not_tell_whether_they_match(make: Make) -> None:
    bench = make(rules("deny read secrets/*", "ask read *.env"))
    texts = {await bench.said("grep", pattern=pattern) for pattern in ("sesame", "zzz", "TOKEN")}
    (text,) = texts
    assert text.splitlines() == [
        "No matches found",
        "(Left out, because reading them needs permission: prod.env)",
        "(2 files left out: the rules deny reading.)",
    ]


async def test_a_very_long_line_of_a_denied_file_does_not_tell_that_it_matches(make: Make) -> None:
    bench = make(rules("deny read secrets/*"))
    bench.write({"secrets/long.txt": "needle " + "y" * 5_000_000})
    assert (await bench.structured("grep", pattern="needle"))["truncated"] is False
    bench.write({"long.txt": "needle " + "y" * 5_000_000})
    assert (await bench.structured("grep", pattern="needle"))["truncated"] is True


async def test_denied_files_take_no_place_of_those_that_are_shown(make: Make) -> None:
    bench = make(rules("deny read a/*"))
    bench.write({f"a/{n:03}.py": "needle\n" for n in range(40)} | {"z.py": "needle\n"})
    assert [e["path"] for e in (await bench.structured("glob", pattern="*.py", limit=1))["entries"]]
    found = await bench.structured("grep", pattern="needle", limit=1)
    assert [match["entry"]["path"] for match in found["matches"]] == ["z.py"]
    assert found["truncated"] is False
    assert found["omitted"] == {"denied": 40, "needsPermission": []}


async def test_names_that_are_no_text_are_left_out_too(make: Make) -> None:
    bench = make(rules("ask read odd/*"))
    folder = os.fsencode(bench.root / "odd")
    os.mkdir(folder)
    with open(folder + b"/\xff.txt", "wb") as file:
        file.write(b"sesame\n")
    for found in (
        await bench.structured("glob", pattern="odd/*"),
        await bench.structured("grep", pattern="s"),
        await bench.structured("read", path="odd"),
    ):
        assert found["omitted"] == {"denied": 0, "needsPermission": ["odd/\ufffd.txt"]}


async def test_whether_a_denied_file_exists_is_not_told(make: Make) -> None:
    bench = make(rules("deny read secrets/*"))
    for tool in ("read", "grep", "glob"):
        more = {} if tool == "read" else {"pattern": "x"}
        there = await bench.said(tool, path=FILE, **more)
        missing = await bench.said(tool, path="secrets/non.txt", **more)
        assert missing == there.replace("key.txt", "non.txt")


async def test_the_usual_rules_ask_about_environment_files_in_every_tool(make: Make) -> None:
    bench = make(rules("ask read *.env", "ask read *.env.*", "allow read *.env.example"))
    bench.write({".env.local": SECRET, ".env.example": "TOKEN=\n"})
    for path in (".env", "prod.env", ".env.local"):
        assert await bench.verdict("read", path=path) == "ask"
        assert await bench.verdict("grep", path=path, pattern="TOKEN") == "ask"
    assert await bench.verdict("grep", path=".env.example", pattern="TOKEN") == "allow"
    assert SECRET not in await bench.said("grep", pattern="TOKEN=.*")
    listing = await bench.structured("read", path=".")
    left_out = {"denied": 0, "needsPermission": [".env", ".env.local", "prod.env"]}
    assert listing["omitted"] == left_out


async def test_what_the_session_has_read_may_be_used_again_without_another_question(
    make: Make,
) -> None:
    bench = make(rules("ask read secrets/*"))
    scope = ApprovalScope(session_id=bench.context.session_id, agent="build")
    await bench.saved.add(PLACE, scope, action="read", resources=(FILE,))
    assert await bench.verdict("read", path=FILE) == "allow"
    for approval in await bench.saved.list(PLACE.project_id):
        await bench.saved.remove(approval.id)
    assert await bench.verdict("grep", path=FILE, pattern="open") == "allow"
    # Another program has changed it: that content was not approved.
    bench.write({FILE: "open another\n"})
    assert await bench.verdict("grep", path=FILE, pattern="open") == "ask"
    bench.agents["build"] = rules("deny read secrets/*")
    assert await bench.verdict("grep", path=FILE, pattern="open") == "deny"


CHANGES: Final[Mapping[str, Callable[[str], tuple[str, Inputs]]]] = {
    "write": lambda path: ("write", {"path": path, "content": "x"}),
    "edit": ONE_FILE["edit"],
    "patch": ONE_FILE["patch"],
    "move away": ONE_FILE["move by a patch"],
    "delete": lambda path: ("apply_patch", {"patchText": patch(f"*** Delete File: {path}")}),
    "add": lambda path: (
        "apply_patch",
        {"patchText": patch(f"*** Add File: {path.replace('key', 'new')}", "+x")},
    ),
    "move there": lambda path: (
        "apply_patch",
        {
            "patchText": patch(
                "*** Update File: notes.md", f"*** Move to: {path.replace('key', 'new')}"
            )
        },
    ),
    "create": lambda path: ("write", {"path": path.replace("key", "new"), "content": "x"}),
}


@pytest.mark.parametrize("way", CHANGES)
@pytest.mark.parametrize("spelling", SPELLINGS[:9])
@pytest.mark.parametrize("effect", ["deny", "ask"])
async def test_a_file_that_may_not_be_changed_is_changed_by_no_tool(
    make: Make, effect: Verdict, spelling: str, way: str
) -> None:
    bench = make(rules(f"{effect} edit secrets/*"))
    before = {path: path.read_bytes() for path in bench.root.rglob("*") if path.is_file()}
    tool, given = CHANGES[way](spelling)
    assert await bench.verdict(tool, **bench.input(given)) == effect
    assert before == {p: p.read_bytes() for p in bench.root.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("way", ["write", "edit", "delete", "create"])
async def test_a_restriction_of_changes_holds_however_it_is_named(
    make: Make, name: str, way: str
) -> None:
    bench = make(rules(f"deny edit {name}"))
    tool, given = CHANGES[way](FILE)
    assert await bench.verdict(tool, **given) == "deny"


async def test_a_subagent_may_not_do_unasked_what_its_callers_must_ask_for(
    make: Make,
) -> None:
    bench = make(rules("ask read .env", "ask edit notes.md", "deny read secrets/*"))
    bench.agents |= {"explore": ALLOW_ALL, "middle": ALLOW_ALL, "narrow": rules("deny read *.md")}
    calls = {
        ".env": ("read", {"path": ".env"}),
        "edit": ("edit", {"path": "notes.md", "oldString": "nothing", "newString": "x"}),
        "grep": ("grep", {"path": ".env", "pattern": "T"}),
        "key": ("read", {"path": FILE}),
    }

    async def verdicts() -> dict[str, Verdict]:
        return {name: await bench.verdict(tool, **given) for name, (tool, given) in calls.items()}

    for above in (("build",), ("middle", "build"), ("build", "middle")):
        bench.as_agent("explore", *above)
        assert await verdicts() == {".env": "ask", "edit": "ask", "grep": "ask", "key": "deny"}
    bench.as_agent("narrow", "build")
    assert await bench.verdict("read", path="notes.md") == "deny"
    bench.as_agent("explore")
    assert await bench.verdict("read", path=".env") == "allow"


PATTERNS: Final = (
    *("*", "secrets/*", "secrets", "*.txt", "*key*", "linked/*", "notes.md", "prod.env", "*.env"),
    *("secrets/deep/*", "{real}/secrets/*", "{given}/*", "{real}/*.md", "alias.txt", "?otes.md"),
)


def drawn_rules(action: str) -> st.SearchStrategy[Ruleset]:
    drawn = st.builds(
        Rule,
        st.sampled_from([action, "*"]),
        st.sampled_from(PATTERNS),
        st.sampled_from(["allow", "ask", "deny"]),
    )
    return st.lists(drawn, max_size=6).map(tuple)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=drawn_rules("read"))
async def test_every_tool_and_spelling_gives_one_decision_for_one_file(
    tmp_path_factory: pytest.TempPathFactory, drawn: Ruleset
) -> None:
    allow: Ruleset = tuple(Rule(name, "*", "allow") for name in ("grep", "glob", "edit"))
    bench = Places(tmp_path_factory.mktemp("places"), (*drawn, *allow), ripgrep=RIPGREP)
    with bench.open():
        visible = [path for path in TREE if not path.startswith(".")]
        decided: dict[str, Verdict] = {
            path: await bench.verdict("read", path=path) for path in visible
        }
        for spelling in SPELLINGS:
            assert await bench.verdict("read", **bench.input({"path": spelling})) == decided[FILE]
        for path, expected in decided.items():
            assert await bench.verdict("grep", path=path, pattern=".") == expected
        if await bench.verdict("glob", pattern="*") != "deny":
            await check_searches(bench, decided)


async def check_searches(bench: Places, decided: Mapping[str, Verdict]) -> None:
    """That searches of the whole project show what `read` shows, and ask for what it asks for."""
    globbed = await bench.structured("glob", pattern="**")
    found = await bench.structured("grep", pattern=".")
    for structured, shown in (
        (globbed, {entry["path"] for entry in globbed["entries"]}),
        (found, {match["entry"]["path"] for match in found["matches"]}),
    ):
        left_out = structured.get("omitted", {"denied": 0, "needsPermission": []})
        assert {path: verdict_of(path, shown, left_out) for path in decided} == decided
        assert left_out["denied"] == sum(effect == "deny" for effect in decided.values())


def verdict_of(path: str, shown: set[str], left_out: Mapping[str, JsonValue]) -> Effect:
    if path in shown:
        return "allow"
    return "ask" if path in left_out["needsPermission"] else "deny"


WITHOUT_EFFECT: Final[Mapping[str, Callable[[str], tuple[str, Inputs]]]] = {
    "write over": CHANGES["write"],
    "edit": ONE_FILE["guess by an edit"],
    "patch": lambda path: (
        "apply_patch",
        {"patchText": patch(f"*** Update File: {path}", "@@", "-no such line", "+x")},
    ),
    "add": lambda path: ("apply_patch", {"patchText": patch(f"*** Add File: {path}", "+x")}),
}
"""Calls that fail after they were allowed, because the file is there and was not read."""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=drawn_rules("edit"))
async def test_every_tool_and_spelling_gives_one_decision_for_one_change(
    tmp_path_factory: pytest.TempPathFactory, drawn: Ruleset
) -> None:
    allow: Ruleset = (Rule("read", "*", "allow"),)
    bench = Places(tmp_path_factory.mktemp("places"), (*drawn, *allow), ripgrep=RIPGREP)
    with bench.open():
        decided = {
            await bench.verdict(tool, **bench.input(given))
            for spelling in SPELLINGS
            for tool, given in (way(spelling) for way in WITHOUT_EFFECT.values())
        }
    # `other` is the failure of a call that was allowed.
    assert len(decided) == 1, decided
    assert (bench.root / FILE).read_text() == TREE[FILE]
