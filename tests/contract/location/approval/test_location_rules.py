"""Decisions by the rules of an agent, of those that called it, and of the user."""

import os
from pathlib import Path

import pytest

from perdure.core.approval import rules as permission
from perdure.host.files import cached_files
from perdure.location.approval.location_rules import Judge, LocationRules
from perdure.ports import PermissionAsk
from perdure.schema.approval.permission import Effect, Rule, Ruleset
from perdure.schema.ids import SessionID

ANYTHING = Rule("*", "*", "allow")


def ask(
    action: str, *resources: str, protected: bool = False, save: tuple[str, ...] = ()
) -> PermissionAsk:
    return PermissionAsk(
        session_id=SessionID("ses_one"),
        agent="child",
        action=action,
        resources=resources,
        protected=protected,
        save=save,
    )


@pytest.mark.parametrize(
    "action", ["read", "edit", "bash", "webfetch", "task", "external_directory"]
)
@pytest.mark.parametrize("own", ["allow", "ask", "deny"])
@pytest.mark.parametrize("parent", ["allow", "ask", "deny"])
def test_the_strictest_of_an_agent_and_its_callers_holds(
    action: str, own: Effect, parent: Effect
) -> None:
    agents: dict[str, Ruleset] = {
        "child": (Rule(action, "*", own),),
        "parent": (ANYTHING, Rule(action, "*", parent)),
        "root": (ANYTHING,),
    }
    strictest = max(own, parent, key=["allow", "ask", "deny"].index)
    known = LocationRules(agents.__getitem__)
    for above in (("parent",), ("parent", "root"), ("root", "parent")):
        judge = known.judge("child", above)
        assert judge.decide(ask(action, "x")).effect == strictest
        assert judge.effect(action)("x") == strictest
    assert known.judge("child").decide(ask(action, "x")).effect == own


def test_an_approval_answers_the_question_of_every_agent_and_no_denial() -> None:
    agents: dict[str, Ruleset] = {
        "child": (Rule("read", "*", "ask"),),
        "parent": (Rule("read", "*", "ask"), Rule("read", "b", "deny")),
    }
    judge = LocationRules(agents.__getitem__).judge("child", ("parent",))
    approvals = permission.approvals([("read", "*")])
    assert judge.decide(ask("read", "a"), approvals).effect == "allow"
    assert judge.decide(ask("read", "b"), approvals).effect == "deny"


NAMED: Ruleset = (Rule("edit", "AGENTS.md", "allow"),)
FOLDER: Ruleset = (Rule("edit", ".github/*", "allow"),)
SETTINGS: Ruleset = (Rule("edit", "opencode.json", "allow"),)


@pytest.mark.parametrize(
    ("path", "agent", "users", "effect"),
    [
        ("AGENTS.md", (ANYTHING,), (), "ask"),
        ("AGENTS.md", (ANYTHING, Rule("edit", "*", "allow")), (Rule("edit", "*", "allow"),), "ask"),
        ("AGENTS.md", (ANYTHING, *NAMED), NAMED, "allow"),
        # The same rule in a project's document: the agent has it, and the user did not write it.
        ("AGENTS.md", (ANYTHING, *NAMED), (), "ask"),
        ("AGENTS.md", (ANYTHING, Rule("edit", "*", "deny")), NAMED, "deny"),
        ("AGENTS.md", (Rule("edit", "*", "ask"),), NAMED, "ask"),
        ("AGENTS.md", (ANYTHING,), (*NAMED, Rule("edit", "*", "ask")), "ask"),
        ("AGENTS.md", (ANYTHING,), (*NAMED, Rule("edit", "*", "allow")), "ask"),
        (".github/workflows/ci.yml", (ANYTHING,), FOLDER, "allow"),
        (".github/workflows/ci.yml", (ANYTHING,), NAMED, "ask"),
        ("opencode.json", (ANYTHING,), SETTINGS, "allow"),
        ("opencode.json", (ANYTHING,), (), "ask"),
    ],
)
def test_a_protected_file_needs_a_rule_of_the_user_that_names_it(
    path: str, agent: Ruleset, users: Ruleset, effect: Effect
) -> None:
    known = LocationRules(lambda name: agent, users=lambda name: users)
    wanted = ask("edit", path, protected=True, save=(path,))
    assert known.judge("child").decide(wanted).effect == effect


@pytest.mark.parametrize(
    ("approved", "save", "effect"),
    [
        ("AGENTS.md", ("AGENTS.md",), "allow"),
        ("*", ("AGENTS.md",), "ask"),
        ("CLAUDE.md", ("AGENTS.md",), "ask"),
        # What holds the agent's own rules offers nothing to save, and nothing saved allows it.
        ("AGENTS.md", (), "ask"),
    ],
)
def test_an_approval_of_exactly_that_file_is_remembered_where_it_was_offered(
    approved: str, save: tuple[str, ...], effect: Effect
) -> None:
    known = LocationRules(lambda name: (ANYTHING,), users=lambda name: ())
    approvals = permission.approvals([("edit", approved)])
    wanted = ask("edit", "AGENTS.md", protected=True, save=save)
    assert known.judge("child").decide(wanted, approvals).effect == effect


def test_a_caller_without_the_users_word_does_not_pass_it_on() -> None:
    users: dict[str, Ruleset] = {"child": NAMED, "parent": ()}
    known = LocationRules(lambda name: (ANYTHING,), users=users.__getitem__)
    wanted = ask("edit", "AGENTS.md", protected=True)
    assert known.judge("child").decide(wanted).effect == "allow"
    assert known.judge("child", ("parent",)).decide(wanted).effect == "ask"


def test_several_protected_files_are_all_needed() -> None:
    judge = Judge(rules=((ANYTHING,),), users=(NAMED,))
    both = ask("edit", "AGENTS.md", "CLAUDE.md", protected=True)
    assert judge.decide(both).resource == "CLAUDE.md"


@pytest.mark.parametrize(
    "restrictions",
    [
        (),
        ("*.env",),
        ("*.env", "secrets/*"),
        ("/abs/*", "*.env"),
        ("*", "*.env"),
        ("a?c", "*x*y*"),
    ],
)
@pytest.mark.parametrize("later", [(), (Rule("read", "prod.env", "allow"),), (ANYTHING,)])
def test_many_files_are_decided_as_each_one_is(
    restrictions: tuple[str, ...], later: Ruleset
) -> None:
    rules = (ANYTHING, *(Rule("read", each, "deny") for each in restrictions), *later)
    judge = Judge(rules=(rules, (ANYTHING, Rule("read", "b*", "ask"))))
    effect = judge.effect("read")
    for path in ("prod.env", "a/b.env", "secrets/x", "abc", "x\\y", "b", "/abs/x", "/q.env", "."):
        assert effect(path) == judge.decide(ask("read", path)).effect


def test_a_location_that_is_reached_by_a_link_is_named_both_ways(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for name in ("real", "link"):
        rule = Rule("read", f"{tmp_path}/{name}/x", "deny")
        known = LocationRules(
            lambda agent, rule=rule: (ANYTHING, rule), directory=f"{tmp_path}/link"
        )
        assert known.judge("child").decide(ask("read", "x")).effect == "deny"
        assert known.names.resource(os.path.realpath(tmp_path / "link/y")) == "y"


def test_whether_a_file_system_ignores_case_is_seen_by_the_other_spelling(tmp_path: Path) -> None:
    path = tmp_path / "Name"
    path.touch()
    assert cached_files.ignores_case(str(path)) is (tmp_path / "nAME").exists()
    (tmp_path / "Link").touch()
    (tmp_path / "lINK").symlink_to("Link")
    assert not cached_files.ignores_case(str(tmp_path / "Link"))
    (tmp_path / "Twice").touch()
    # As on a file system that ignores case: both spellings are one file.
    os.link(tmp_path / "Twice", tmp_path / "tWICE")
    assert cached_files.ignores_case(str(tmp_path / "Twice"))
    assert not cached_files.ignores_case(str(tmp_path / "123"))
