"""Permission rules: what an agent may do to which resource.

The last rule that matches wins; where none matches, a person is asked. What a person approved for
good is added behind the agent's own rules, and so can turn `ask` into `allow`. Asking and
remembering are not done here.

Invariant: no approval overrides a `deny` of the agent's own rules, and about what is protected
neither a rule nor an earlier approval says yes.
"""

from collections.abc import Iterable
from typing import Final

from perdure.core.text import wildcard
from perdure.schema.approval.permission import Effect, Rule, Ruleset
from perdure.schema.value import Value

DENY_ALL: Final[Ruleset] = (Rule("*", "*", "deny"),)
"""What an agent that nobody knows may do."""

_PATH_ACTIONS: Final = frozenset({"external_directory", "read", "edit"})


class ResourceParts(Value, kw_only=True):
    """What a resource consists of, such as the commands in a command line."""

    texts: tuple[str, ...]
    """Each must be allowed."""
    spellings: tuple[str, ...] = ()
    """Other forms of them: a rule may deny by these, and not allow."""
    complete: bool = True
    """False: there is more to it than these, and nobody can say what."""


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


def common_effect(rules: Ruleset, action: str) -> Effect | None:
    """The effect that every resource of `action` has alike; None when they must be told apart."""
    for rule in reversed(rules):
        if wildcard.matches(rule.action, action):
            return rule.effect if rule.resource == "*" else None
    return "ask"


def decide(
    agent_rules: Ruleset,
    approvals: Ruleset,
    *,
    action: str,
    resources: tuple[str, ...],
    parts: ResourceParts | None = None,
) -> Decision:
    """One decision over every resource: deny before ask before allow. Nothing asked is allowed.

    With `parts`, a rule that allows a resource by a pattern does not allow what else is in it.
    """

    def judge(rules: Ruleset) -> Decision:
        if parts is None:
            return _strictest(rules, action, resources)
        return _decide_parts(rules, action, resources, parts)

    own = judge(agent_rules)
    if own.effect != "ask" or not approvals:
        return own
    return judge((*agent_rules, *approvals))


def decide_protected(agent_rules: Ruleset, *, action: str, resources: tuple[str, ...]) -> Decision:
    """About what only a person may allow: a `deny` holds, whatever else is said is asked."""
    own = _strictest(agent_rules, action, resources)
    return own if own.effect == "deny" else Decision("ask", resources[0])


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


def _decide_parts(
    rules: Ruleset, action: str, resources: tuple[str, ...], parts: ResourceParts
) -> Decision:
    named = [(text, _narrow_rule(rules, action, text)) for text in resources]
    forms = [(text, _narrow_rule(rules, action, text)) for text in parts.spellings]
    for text, rule in (*named, *forms):
        if rule is not None and rule.effect == "deny":
            return Decision("deny", text, rule)
    decided = _strictest(rules, action, parts.texts)
    if decided.effect == "deny":
        return decided
    if all(rule is not None and _allows_literally(rule, text) for text, rule in named):
        return Decision("allow")
    for text, rule in named:
        if rule is not None and rule.effect == "ask":
            return Decision("ask", text, rule)
    return decided if parts.complete else _decide_wide(rules, action, resources)


def _allows_literally(rule: Rule, text: str) -> bool:
    return rule.effect == "allow" and rule.resource == text


def _narrow_rule(rules: Ruleset, action: str, resource: str) -> Rule | None:
    """The rule that decides about `resource`, if it says more than that anything goes or not."""
    rule = matching_rule(rules, action, resource)
    return None if rule is None or rule.resource == "*" else rule


def _decide_wide(rules: Ruleset, action: str, resources: tuple[str, ...]) -> Decision:
    """About what no narrow rule can be trusted with: denied where that is the rule, else asked."""
    wide = tuple(rule for rule in rules if rule.resource == "*")
    denied = _strictest(wide, action, resources)
    return denied if denied.effect == "deny" else Decision("ask", resources[0])


def _expanded(rule: Rule, home: str) -> Rule:
    if rule.action not in _PATH_ACTIONS:
        return rule
    for name in ("~", "$HOME"):
        if rule.resource == name or rule.resource.startswith(f"{name}/"):
            return Rule(rule.action, home + rule.resource.removeprefix(name), rule.effect)
    return rule
