"""Permission rules: what an agent may do to which resource.

The last rule that matches wins; where none matches, a person is asked. What a person approved for
good is added behind the agent's own rules, and so can turn `ask` into `allow`. Asking and
remembering are not done here.

Invariant: no approval overrides a `deny` of the agent's own rules.
"""

from collections.abc import Iterable
from typing import Final

from perdure.core import wildcard
from perdure.schema.permission import Effect, Rule, Ruleset
from perdure.schema.value import Value

DENY_ALL: Final[Ruleset] = (Rule("*", "*", "deny"),)
"""What an agent that nobody knows may do."""

_PATH_ACTIONS: Final = frozenset({"external_directory", "read", "edit"})


class Decision(Value):
    """`resource` is the first that brought the effect about, `rule` the one that decided on it.

    There is no resource when none was asked about, and no rule when nothing matched.
    """

    effect: Effect
    resource: str | None = None
    rule: Rule | None = None


def evaluate(rules: Ruleset, action: str, resource: str) -> Effect:
    """The effect of the last matching rule; `ask` when there is none."""
    rule = matching_rule(rules, action, resource)
    return "ask" if rule is None else rule.effect


def matching_rule(rules: Ruleset, action: str, resource: str) -> Rule | None:
    """The rule that decides, if any does."""
    for rule in reversed(rules):
        if wildcard.matches(rule.action, action) and wildcard.matches(rule.resource, resource):
            return rule
    return None


def decide(
    agent_rules: Ruleset, approvals: Ruleset, *, action: str, resources: tuple[str, ...]
) -> Decision:
    """One decision over every resource: deny before ask before allow. Nothing asked is allowed."""
    own = _strictest(agent_rules, action, resources)
    if own.effect != "ask" or not approvals:
        return own
    return _strictest((*agent_rules, *approvals), action, resources)


def approvals(pairs: Iterable[tuple[str, str]]) -> Ruleset:
    """Remembered (action, resource) pairs as the rules they stand for."""
    return tuple(Rule(action, resource, "allow") for action, resource in pairs)


def expand_home(rules: Ruleset, home: str) -> Ruleset:
    """Rules about paths may begin with `~` or `$HOME`. A command is text and stays as it is."""
    return tuple(_expanded(rule, home) for rule in rules)


def _strictest(rules: Ruleset, action: str, resources: tuple[str, ...]) -> Decision:
    asked: Decision | None = None
    for resource in resources:
        rule = matching_rule(rules, action, resource)
        effect = "ask" if rule is None else rule.effect
        if effect == "deny":
            return Decision("deny", resource, rule)
        if effect == "ask" and asked is None:
            asked = Decision("ask", resource, rule)
    return asked or Decision("allow")


def _expanded(rule: Rule, home: str) -> Rule:
    if rule.action not in _PATH_ACTIONS:
        return rule
    for name in ("~", "$HOME"):
        if rule.resource == name or rule.resource.startswith(f"{name}/"):
            return Rule(rule.action, home + rule.resource.removeprefix(name), rule.effect)
    return rule
