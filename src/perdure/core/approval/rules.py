"""Permission rules: what an agent may do to which resource.

The last rule that matches wins; if none matches, a person is asked. Saved approvals are appended
to these rules, so they can turn `ask` into `allow`. Rules of several owners are LayeredRules: the
strictest layer wins. Asking and saving are done elsewhere.

Invariant: no approval overrides a `deny`, or an `ask` of the managed configuration; no layer allows
more than a higher one; and neither a rule nor an approval allows a protected resource.
"""

from collections.abc import Iterable
from typing import Final, Literal

from msgspec.structs import replace

from perdure.core.text import wildcard
from perdure.schema.approval.permission import Effect, Rule, Ruleset
from perdure.schema.value import Value

DENY_ALL: Final[Ruleset] = (Rule("*", "*", "deny"),)
"""The rules of an unknown agent."""

Layer = Literal["managed", "user", "project"]
"""The owner of a configuration document, the highest first."""

_ALLOW_ALL: Final[Ruleset] = (Rule("*", "*", "allow"),)
_PATH_ACTIONS: Final = frozenset({"external_directory", "read", "edit"})
_STRICTNESS: Final[tuple[Effect, ...]] = ("deny", "ask", "allow")


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

    `resource` is None when none was asked about, and `rule` when no rule matched. `layer` is that
    of the rule; None if it is a default of the program, or there is only one ruleset.
    """

    effect: Effect
    resource: str | None = None
    rule: Rule | None = None
    layer: Layer | None = None


class LayeredRules(Value, kw_only=True):
    """The rules of one agent, by owner. Made by `layered`."""

    own: Ruleset
    """The program's, the managed and the user's, in this order: the last match wins."""
    managed: Ruleset = ()
    """Bounds `own`: allows all but what the managed configuration says."""
    project: Ruleset = ()
    """Bounds `own`: allows all but what the project's configuration says."""
    user: Ruleset = ()
    """The part of `own` that is the user's."""

    @property
    def rulesets(self) -> tuple[Ruleset, ...]:
        """The rulesets of which the strictest counts. An empty `own` asks about everything."""
        managed = (self.managed,) if self.managed else ()
        project = (self.project,) if self.project else ()
        return (*managed, self.own, *project)


Rules = Ruleset | LayeredRules


def layered(
    *, defaults: Ruleset = (), managed: Ruleset = (), user: Ruleset = (), project: Ruleset = ()
) -> LayeredRules:
    """The rules of one agent: the project's narrow the user's, and the managed narrow both."""
    return LayeredRules(
        own=(*defaults, *managed, *user),
        managed=(*_ALLOW_ALL, *managed) if managed else (),
        project=(*_ALLOW_ALL, *project) if project else (),
        user=user,
    )


def rulesets(rules: Rules) -> tuple[Ruleset, ...]:
    """The rulesets of which the strictest counts."""
    return rules.rulesets if isinstance(rules, LayeredRules) else (rules,)


def evaluate(rules: Rules, action: str, resource: str) -> Effect:
    """The effect of the last matching rule; `ask` if there is none."""
    found = [matching_rule(each, action, resource) for each in rulesets(rules)]
    effects = {"ask" if rule is None else rule.effect for rule in found}
    return "deny" if "deny" in effects else "ask" if "ask" in effects else "allow"


def matching_rule(rules: Ruleset, action: str, resource: str) -> Rule | None:
    """The last rule that matches, if any."""
    for rule in reversed(rules):
        if wildcard.matches(rule.action, action) and wildcard.matches(rule.resource, resource):
            return rule
    return None


def common_effect(rules: Rules, action: str) -> Effect | None:
    """The common effect on all resources of `action`; None if it depends on the resource."""
    effects = {_common_effect(each, action) for each in rulesets(rules)}
    if "deny" in effects:
        return "deny"
    if None in effects:
        return None
    return "ask" if "ask" in effects else "allow"


def decide(
    agent_rules: Rules,
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

    def judge_with_approvals(rules: Ruleset, approvals: Ruleset) -> Decision:
        own = judge(rules)
        if own.effect != "ask" or not approvals:
            return own
        return judge((*rules, *approvals))

    if not isinstance(agent_rules, LayeredRules):
        return judge_with_approvals(agent_rules, approvals)
    decided = (
        judge_with_approvals(each, () if each is agent_rules.managed else approvals)
        for each in agent_rules.rulesets
    )
    return _with_layer(_first_strictest(decided), agent_rules)


def decide_protected(agent_rules: Rules, *, action: str, resources: tuple[str, ...]) -> Decision:
    """The decision on a protected resource: a `deny` holds, otherwise a person is asked."""
    own = decide(agent_rules, (), action=action, resources=resources)
    return own if own.effect == "deny" else Decision("ask", resources[0])


def approvals(pairs: Iterable[tuple[str, str]]) -> Ruleset:
    """Saved (action, resource) pairs as rules that allow them."""
    return tuple(Rule(action, resource, "allow") for action, resource in pairs)


def expand_home(rules: Ruleset, home: str) -> Ruleset:
    """Rules with `~` or `$HOME` at the start of a path expanded. Commands are not changed."""
    return tuple(_expanded(rule, home) for rule in rules)


def _common_effect(rules: Ruleset, action: str) -> Effect | None:
    for rule in reversed(rules):
        if wildcard.matches(rule.action, action):
            return rule.effect if rule.resource == "*" else None
    return "ask"


def _first_strictest(decisions: Iterable[Decision]) -> Decision:
    """The first of the strictest decisions."""
    return min(decisions, key=lambda decision: _STRICTNESS.index(decision.effect))


def _with_layer(decision: Decision, rules: LayeredRules) -> Decision:
    """The decision with the owner of its rule."""
    owners: tuple[tuple[Layer, Ruleset], ...] = (
        ("managed", rules.managed),
        ("project", rules.project),
        ("user", rules.user),
    )
    for layer, owned in owners:
        if any(rule is decision.rule for rule in owned):
            return replace(decision, layer=layer)
    return decision


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
