"""Permission rules: what an agent may do to which resource.

The last rule that matches wins; if none matches, a person is asked. Saved approvals are appended
to the agent's own rules, so they can turn `ask` into `allow`. Asking and saving are done elsewhere.

Invariant: no approval overrides a `deny` of the agent's own rules, and no rule allows a protected
resource, nor does an earlier approval unless the request offered to save it.
"""

from collections.abc import Iterable
from typing import Final

from perdure.core.text import wildcard
from perdure.schema.approval.permission import Effect, Rule, Ruleset
from perdure.schema.value import Value

DENY_ALL: Final[Ruleset] = (Rule("*", "*", "deny"),)
"""The rules of an unknown agent."""

_PATH_ACTIONS: Final = frozenset({"external_directory", "read", "edit"})


class ResourceParts(Value, kw_only=True):
    """The parts of a resource, such as the commands in a command line."""

    texts: tuple[str, ...]
    """Each must be allowed."""
    spellings: tuple[str, ...] = ()
    """Other forms of the parts: rules can deny by these, but not allow."""
    complete: bool = True
    """False if the resource has further parts that could not be determined."""


class Decision(Value):
    """`resource` is the first with this effect, `rule` the one that decided on it.

    `resource` is None when none was asked about, and `rule` when no rule matched.
    """

    effect: Effect
    resource: str | None = None
    rule: Rule | None = None


def evaluate(rules: Ruleset, action: str, resource: str) -> Effect:
    """The effect of the last matching rule; `ask` if there is none."""
    rule = matching_rule(rules, action, resource)
    return "ask" if rule is None else rule.effect


def matching_rule(rules: Ruleset, action: str, resource: str) -> Rule | None:
    """The last rule that matches, if any."""
    for rule in reversed(rules):
        if wildcard.matches(rule.action, action) and wildcard.matches(rule.resource, resource):
            return rule
    return None


def common_effect(rules: Ruleset, action: str) -> Effect | None:
    """The common effect on all resources of `action`; None if it depends on the resource."""
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
    """One decision over all resources: deny before ask before allow. No resources: allow.

    With `parts`, a rule that allows a resource by a pattern does not allow its other parts.
    """

    def judge(rules: Ruleset) -> Decision:
        if parts is None:
            return _strictest(rules, action, resources)
        return _decide_parts(rules, action, resources, parts)

    own = judge(agent_rules)
    if own.effect != "ask" or not approvals:
        return own
    return judge((*agent_rules, *approvals))


def decide_protected(
    agent_rules: Ruleset, approvals: Ruleset = (), *, action: str, resources: tuple[str, ...]
) -> Decision:
    """The decision on a protected resource: a `deny` holds, otherwise a person is asked.

    `approvals` are a person's for this action alone.
    """
    own = _strictest(agent_rules, action, resources)
    if own.effect == "deny":
        return own
    granted = tuple(rule for rule in approvals if rule.action == action)
    return _strictest(granted, action, resources) if granted else Decision("ask", resources[0])


def decide_contained(
    decision: Decision, rules: Ruleset, *, action: str, parts: ResourceParts | None
) -> Decision:
    """The decision on a command in a sandbox: what no rule is about needs no question.

    A command that could not be read may contain what a rule is about.
    """
    if decision.effect != "ask" or decision.rule is not None:
        return decision
    complete = parts is None or parts.complete
    if complete or not any(wildcard.matches(rule.action, action) for rule in rules):
        return Decision("allow")
    return decision


def approvals(pairs: Iterable[tuple[str, str]]) -> Ruleset:
    """Saved (action, resource) pairs as rules that allow them."""
    return tuple(Rule(action, resource, "allow") for action, resource in pairs)


def expand_home(rules: Ruleset, home: str) -> Ruleset:
    """Rules with `~` or `$HOME` at the start of a path expanded. Commands are not changed."""
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
    """The rule that decides about `resource`, unless it is for all resources."""
    rule = matching_rule(rules, action, resource)
    return None if rule is None or rule.resource == "*" else rule


def _decide_wide(rules: Ruleset, action: str, resources: tuple[str, ...]) -> Decision:
    """The decision without narrow rules: denied by a rule for all resources, else asked."""
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
