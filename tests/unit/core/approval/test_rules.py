"""Rules: the last match wins, a person decides what is open, and a denial stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.approval import rules as permission
from perdure.core.approval.rules import ResourcePart, ResourceParts
from perdure.schema.approval.permission import Effect, Rule, Ruleset

RULES: Ruleset = (
    Rule("*", "*", "allow"),
    Rule("read", "*.env", "ask"),
    Rule("bash", "git *", "ask"),
    Rule("bash", "git push *", "deny"),
    Rule("edit", "*", "deny"),
    Rule("edit", "docs/*", "allow"),
)


@pytest.mark.parametrize(
    ("action", "resource", "effect"),
    [
        ("webfetch", "https://example.org", "allow"),
        ("read", "src/app.py", "allow"),
        ("read", "deep/down/.env", "ask"),
        ("bash", "git status", "ask"),
        ("bash", "git", "ask"),
        ("bash", "git push origin", "deny"),
        ("bash", "gitk", "allow"),
        ("edit", "src/app.py", "deny"),
        ("edit", "docs/guide/start.md", "allow"),
    ],
)
def test_the_last_matching_rule_decides(action: str, resource: str, effect: Effect) -> None:
    assert permission.evaluate(RULES, action, resource) == effect


def test_without_a_matching_rule_a_person_is_asked() -> None:
    assert permission.evaluate((), "bash", "ls") == "ask"
    assert permission.evaluate((Rule("read", "*", "allow"),), "bash", "ls") == "ask"


@pytest.mark.parametrize(
    ("resources", "effect", "named"),
    [
        ((), "allow", None),
        (("a.py",), "allow", None),
        (("a.py", "b.env"), "ask", "b.env"),
        (("b.env", "a.py", "secret"), "deny", "secret"),
    ],
)
def test_over_several_resources_the_strictest_answer_counts(
    resources: tuple[str, ...], effect: Effect, named: str | None
) -> None:
    rules = (
        Rule("read", "*", "allow"),
        Rule("read", "*.env", "ask"),
        Rule("read", "secret", "deny"),
    )
    decision = permission.decide(rules, (), action="read", resources=resources)
    assert (decision.effect, decision.resource) == (effect, named)


def test_an_approval_turns_asking_into_allowing() -> None:
    approvals = permission.approvals([("bash", "git *")])
    decision = permission.decide(RULES, approvals, action="bash", resources=("git status",))
    assert decision.effect == "allow"


def test_an_approval_for_one_of_two_resources_still_asks_for_the_other() -> None:
    approvals = permission.approvals([("read", "a.env")])
    decision = permission.decide(RULES, approvals, action="read", resources=("a.env", "b.env"))
    assert (decision.effect, decision.resource) == ("ask", "b.env")


_TEXT = st.text(alphabet="ab*? /", max_size=5)
_RULE = st.builds(Rule, _TEXT, _TEXT, st.sampled_from(["allow", "deny", "ask"]))


@given(st.lists(_RULE, max_size=6), st.lists(st.tuples(_TEXT, _TEXT), max_size=4), _TEXT, _TEXT)
def test_no_approval_ever_overrides_a_denial(
    rules: list[Rule], pairs: list[tuple[str, str]], action: str, resource: str
) -> None:
    approvals = permission.approvals(pairs)
    decision = permission.decide(tuple(rules), approvals, action=action, resources=(resource,))
    if permission.evaluate(tuple(rules), action, resource) == "deny":
        assert decision.effect == "deny"
        assert decision.rule in rules


def test_an_agent_that_nobody_knows_may_do_nothing() -> None:
    assert permission.evaluate(permission.DENY_ALL, "read", "a.py") == "deny"


def test_home_is_spelled_out_in_rules_about_paths_and_left_alone_in_commands() -> None:
    rules = (
        Rule("read", "~/notes/*", "allow"),
        Rule("external_directory", "$HOME", "allow"),
        Rule("edit", "~other/x", "allow"),
        Rule("bash", "ls ~/x", "allow"),
        Rule("bash", "~/run", "allow"),
    )
    resources = [rule.resource for rule in permission.expand_home(rules, "/home/me")]
    assert resources == ["/home/me/notes/*", "/home/me", "~other/x", "ls ~/x", "~/run"]


def test_what_consists_of_its_parts_alone_is_allowed_with_them() -> None:
    rules = (Rule("bash", "ls *", "allow"),)
    part = ResourcePart(text="ls a")
    whole = permission.decide(
        rules, (), action="bash", resources=("x && ls a",), parts=ResourceParts(parts=(part,))
    )
    more = permission.decide(
        rules,
        (),
        action="bash",
        resources=("x && ls a",),
        parts=ResourceParts(parts=(part,), complete=False),
    )
    assert (whole.effect, more.effect, more.resource) == ("allow", "ask", "x && ls a")


@pytest.mark.parametrize(
    ("rules", "complete", "effect"),
    [
        ((), True, "allow"),
        ((), False, "allow"),
        ((Rule("read", "*", "deny"),), False, "allow"),
        ((Rule("bash", "touch *", "deny"),), True, "allow"),
        ((Rule("bash", "touch *", "deny"),), False, "ask"),
        ((Rule("bash", "*", "ask"),), True, "ask"),
        ((Rule("*", "*", "ask"),), True, "ask"),
        ((Rule("bash", "ls *", "ask"),), True, "ask"),
        ((Rule("bash", "ls *", "deny"),), True, "deny"),
    ],
)
def test_in_a_sandbox_what_no_rule_is_about_needs_no_question(
    rules: Ruleset, effect: Effect, *, complete: bool
) -> None:
    parts = ResourceParts(parts=(ResourcePart(text="ls a"),), complete=complete)
    decided = permission.decide(rules, (), action="bash", resources=("ls a",), parts=parts)
    contained = permission.decide_contained(decided, rules, action="bash", parts=parts)
    assert contained.effect == effect
