"""Rules of a Session: they narrow all others, and lift questions but no denial."""

import pytest

from perdure.core.approval import rules as permission
from perdure.core.approval.rules import LayeredRules, ResourcePart, ResourceParts
from perdure.schema.approval.permission import Effect, Rule, Ruleset, SessionRule

ALL: Ruleset = (Rule("*", "*", "allow"),)


def effect(
    session: Ruleset,
    *,
    user: Ruleset = (),
    managed: Ruleset = (),
    project: Ruleset = (),
    resource: str = "make",
    approvals: Ruleset = (),
) -> Effect:
    layers: LayeredRules = permission.layered(
        defaults=ALL, managed=managed, user=user, project=project
    )
    return permission.decide(
        layers, approvals, action="bash", resources=(resource,), session=session
    ).effect


def bash(effect: Effect, resource: str = "*") -> Rule:
    return Rule("bash", resource, effect)


@pytest.mark.parametrize("said", ["deny", "ask"])
def test_they_narrow_what_is_allowed(said: Effect) -> None:
    assert effect((bash(said),)) == said
    assert effect((bash(said, "rm *"),)) == "allow"
    assert effect((bash(said), bash("allow", "make"))) == "allow"


def test_they_allow_what_the_user_or_the_project_asks_about() -> None:
    assert effect((bash("allow"),), user=(bash("ask"),)) == "allow"
    assert effect((bash("allow"),), project=(bash("ask"),)) == "allow"
    assert effect((bash("allow", "git *"),), user=(bash("ask"),)) == "ask"


def test_they_lift_no_denial_and_nothing_of_the_managed_configuration() -> None:
    assert effect((bash("allow"),), user=(bash("deny"),)) == "deny"
    assert effect((bash("allow"),), project=(bash("deny"),)) == "deny"
    assert effect((bash("allow"),), managed=(bash("deny"),)) == "deny"
    assert effect((bash("allow"),), managed=(bash("ask"),)) == "ask"


def test_an_approval_answers_the_question_of_a_session_but_not_its_denial() -> None:
    saved = permission.approvals([("bash", "make")])
    assert effect((bash("ask"),), approvals=saved) == "allow"
    assert effect((bash("deny"),), approvals=saved) == "deny"


def test_every_part_of_a_command_must_be_allowed() -> None:
    parts = ResourceParts(parts=(ResourcePart(text="make"), ResourcePart(text="rm x")))
    decision = permission.decide(
        (bash("ask"),),
        (),
        action="bash",
        resources=("make; rm x",),
        parts=parts,
        session=(bash("allow", "make"),),
    )
    assert decision.effect == "ask"


def test_a_rule_ends_at_its_time() -> None:
    rules = (
        SessionRule(action="bash", resource="*", effect="deny", expires=1_000),
        SessionRule(action="bash", resource="make", effect="ask"),
    )
    assert len(permission.current_rules(rules, 999)) == 2
    assert permission.current_rules(rules, 1_000) == (bash("ask", "make"),)
