"""Rules of several owners: no layer allows more than a higher one, and approvals lift no denial."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.approval import rules as permission
from perdure.core.approval.rules import Layer, LayeredRules, ResourcePart, ResourceParts
from perdure.schema.approval.permission import Effect, Rule, Ruleset

STRICTNESS: tuple[Effect, ...] = ("deny", "ask", "allow")
DEFAULTS: Ruleset = (Rule("*", "*", "allow"), Rule("read", "*.env", "ask"))

EFFECTS = st.sampled_from(STRICTNESS)
ACTIONS = st.sampled_from(("*", "bash", "read", "edit"))
RESOURCES = st.sampled_from(("*", "git *", "git push *", "*.env", "rm -rf x", "a.env"))
RULESETS = st.lists(st.builds(Rule, ACTIONS, RESOURCES, EFFECTS), max_size=5).map(tuple)
ASKED = st.tuples(
    st.sampled_from(("bash", "read", "edit", "webfetch")),
    st.sampled_from(("git push origin", "git status", "rm -rf x", "a.env", "notes")),
)


def is_wider(effect: Effect, than: Effect) -> bool:
    return STRICTNESS.index(effect) > STRICTNESS.index(than)


def alone(rules: Ruleset, action: str, resource: str) -> Effect | None:
    """What a layer says by itself; None if it says nothing."""
    rule = permission.matching_rule(rules, action, resource)
    return None if rule is None else rule.effect


def decided(rules: LayeredRules, action: str, resource: str, approvals: Ruleset = ()) -> Effect:
    found = permission.decide(rules, approvals, action=action, resources=(resource,))
    return found.effect


@given(RULESETS, RULESETS, RULESETS, RULESETS, ASKED)
def test_nothing_is_wider_than_a_higher_layer_says(
    defaults: Ruleset, managed: Ruleset, user: Ruleset, project: Ruleset, asked: tuple[str, str]
) -> None:
    rules = permission.layered(defaults=defaults, managed=managed, user=user, project=project)
    effect = permission.evaluate(rules, *asked)
    assert effect == decided(rules, *asked)
    for layer in (managed, user, project):
        said = alone(layer, *asked)
        assert said is None or not is_wider(effect, said)
    without = permission.layered(defaults=defaults, managed=managed, user=user)
    assert not is_wider(effect, permission.evaluate(without, *asked))


@given(RULESETS, RULESETS, RULESETS, RULESETS, ASKED)
def test_an_approval_lifts_no_denial_and_nothing_managed(
    managed: Ruleset, user: Ruleset, project: Ruleset, saved: Ruleset, asked: tuple[str, str]
) -> None:
    approvals = permission.approvals((rule.action, rule.resource) for rule in saved)
    rules = permission.layered(defaults=DEFAULTS, managed=managed, user=user, project=project)
    before, after = decided(rules, *asked), decided(rules, *asked, approvals)
    assert before == after or (before, after) == ("ask", "allow")
    said = alone(managed, *asked)
    assert said is None or not is_wider(after, said)


@given(RULESETS, RULESETS, RULESETS, ASKED)
def test_the_common_effect_is_that_of_every_resource(
    managed: Ruleset, user: Ruleset, project: Ruleset, asked: tuple[str, str]
) -> None:
    rules = permission.layered(defaults=DEFAULTS, managed=managed, user=user, project=project)
    common = permission.common_effect(rules, asked[0])
    assert common is None or common == permission.evaluate(rules, *asked)


@given(RULESETS, RULESETS, st.booleans(), ASKED)
def test_the_parts_of_a_command_are_bounded_too(
    user: Ruleset, project: Ruleset, complete: bool, asked: tuple[str, str]
) -> None:
    action, resource = asked
    parts = ResourceParts(
        parts=(ResourcePart(text=resource), ResourcePart(text="git status")), complete=complete
    )
    rules = permission.layered(defaults=DEFAULTS, user=user, project=project)
    own = permission.layered(defaults=DEFAULTS, user=user)
    both: list[Effect] = [
        permission.decide(each, (), action=action, resources=(resource,), parts=parts).effect
        for each in (own, rules)
    ]
    assert not is_wider(both[1], both[0])


@pytest.mark.parametrize(
    ("managed", "user", "project", "effect", "layer"),
    [
        ("deny", "allow", "allow", "deny", "managed"),
        ("ask", "allow", "allow", "ask", "managed"),
        ("allow", "deny", "allow", "deny", "user"),
        (None, "deny", "allow", "deny", "user"),
        (None, "ask", "allow", "ask", "user"),
        (None, "allow", "deny", "deny", "project"),
        (None, None, "ask", "ask", "project"),
        (None, "deny", "ask", "deny", "user"),
        (None, "ask", "deny", "deny", "project"),
    ],
)
def test_the_layer_that_decided_is_named(
    managed: Effect | None,
    user: Effect | None,
    project: Effect | None,
    effect: Effect,
    layer: Layer,
) -> None:
    def only(said: Effect | None) -> Ruleset:
        return () if said is None else (Rule("bash", "rm *", said),)

    rules = permission.layered(
        defaults=DEFAULTS, managed=only(managed), user=only(user), project=only(project)
    )
    found = permission.decide(rules, (), action="bash", resources=("rm x",))
    assert (found.effect, found.layer) == (effect, layer)


def test_inside_one_layer_the_later_rule_wins() -> None:
    project = (Rule("bash", "*", "deny"), Rule("bash", "git *", "allow"))
    rules = permission.layered(defaults=DEFAULTS, project=project)
    assert permission.evaluate(rules, "bash", "git status") == "allow"
    assert permission.evaluate(rules, "bash", "rm x") == "deny"


def test_a_managed_allow_stands_over_a_default_and_below_the_users_ask() -> None:
    managed = (Rule("read", "*.env", "allow"),)
    rules = permission.layered(defaults=DEFAULTS, managed=managed)
    assert permission.evaluate(rules, "read", "a.env") == "allow"
    user = (Rule("read", "a.env", "ask"),)
    rules = permission.layered(defaults=DEFAULTS, managed=managed, user=user)
    assert permission.evaluate(rules, "read", "a.env") == "ask"
