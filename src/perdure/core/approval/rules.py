"""Permission rules: what an agent may do to which resource.

The last rule that matches wins; if none matches, a person is asked. Saved approvals are appended
to these rules, so they can turn `ask` into `allow`. Rules of several owners are LayeredRules: the
strictest layer wins. Asking and saving are done elsewhere.

Invariant: no approval overrides a `deny`, or an `ask` of the managed configuration; no layer allows
more than a higher one; and no rule allows a protected resource, nor does an earlier approval unless
the request offered to save it.
"""

from collections.abc import Callable, Iterable
from typing import Final, Literal

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core.approval.file_names import ANY_PLACE, FileNames
from perdure.core.text import wildcard
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.approval.permission import Effect, Rule, Ruleset, SessionRule
from perdure.schema.value import Value

DENY_ALL: Final[Ruleset] = (Rule("*", "*", "deny"),)
"""The rules of an unknown agent."""

Layer = Literal["managed", "user", "project"]
"""The owner of a configuration document, the highest first."""

_WILDCARDS: Final = lazy_pattern(r"[*?]")
_ALLOW_ALL: Final[Ruleset] = (Rule("*", "*", "allow"),)
_PATH_ACTIONS: Final = frozenset({"external_directory", "read", "edit"})


class ResourcePart(Value, kw_only=True):
    """One of the parts of a resource, such as a command in a command line."""

    text: str
    """The text that a rule must allow, such as one command."""
    pattern: str | None = None
    """The pattern that "always" saves for this part. Only a saved pattern equal to it covers it."""
    spellings: tuple[str, ...] = ()
    """Other forms of it: rules can deny it or ask by these, but not allow it."""
    suspected: tuple[str, ...] = ()
    """Commands that the part may run. A person is asked if a rule does not allow one of them."""


class ResourceParts(Value, kw_only=True):
    """The parts of a resource, each of which must be allowed."""

    parts: tuple[ResourcePart, ...]
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


def allow_all(resource: str) -> Effect:
    """The decision where no rule restricts anything."""
    return "allow"


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


def map_rulesets(rules: Rules, change: Callable[[Ruleset], Ruleset]) -> Rules:
    """The rules with each of their rulesets changed. An empty layer stays empty."""
    if not isinstance(rules, LayeredRules):
        return change(rules)
    return LayeredRules(
        own=change(rules.own),
        managed=change(rules.managed) if rules.managed else (),
        project=change(rules.project) if rules.project else (),
        user=change(rules.user),
    )


def evaluate(rules: Rules, action: str, resource: str, names: FileNames = ANY_PLACE) -> Effect:
    """The effect of the last matching rule; `ask` if there is none."""
    found = [matching_rule(each, action, resource, names) for each in rulesets(rules)]
    effects = {"ask" if rule is None else rule.effect for rule in found}
    return "deny" if "deny" in effects else "ask" if "ask" in effects else "allow"


def matching_rule(
    rules: Ruleset, action: str, resource: str, names: FileNames = ANY_PLACE
) -> Rule | None:
    """The last rule that matches, if any."""
    for rule in reversed(rules):
        if wildcard.matches(rule.action, action) and names.is_named(rule, action, resource):
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
    names: FileNames = ANY_PLACE,
    contained: bool = False,
    session: Ruleset = (),
) -> Decision:
    """One decision over all resources: deny before ask before allow. No resources: allow.

    With `parts`, a rule that allows a resource by a pattern does not allow its other parts, and an
    approval covers a part only if it is what would be saved for that part now. Rules of the
    `session` narrow all others, and allow what these ask about, but not the managed ones.
    """

    def judge(rules: Ruleset, approved: Ruleset) -> Decision:
        if parts is None:
            return _strictest((*rules, *approved), action, resources, names)
        return _decide_parts(rules, approved, action=action, resources=resources, parts=parts)

    def judge_fully(rules: Ruleset, approvals: Ruleset, session: Ruleset = ()) -> Decision:
        decision = judge(rules, ())
        if contained:
            decision = decide_contained(decision, rules, action=action, parts=parts)
        if decision.effect == "ask" and session:
            lifted = judge((*rules, *session), ())
            decision = lifted if lifted.effect == "allow" else decision
        if decision.effect != "ask" or not approvals:
            return decision
        return judge(rules, approvals)

    narrowing = [judge_fully(narrowing_rules(session), approvals)] if session else []
    if not isinstance(agent_rules, LayeredRules):
        return strictest((judge_fully(agent_rules, approvals, session), *narrowing))
    decided = [
        judge_fully(each, (), ())
        if each is agent_rules.managed
        else judge_fully(each, approvals, session)
        for each in agent_rules.rulesets
    ]
    return _with_layer(strictest((*decided, *narrowing)), agent_rules)


def current_rules(rules: Iterable[SessionRule], now: int) -> Ruleset:
    """The rules of a Session that have not expired."""
    return tuple(
        Rule(rule.action, rule.resource, rule.effect)
        for rule in rules
        if rule.expires is UNSET or rule.expires > now
    )


def narrowing_rules(session: Ruleset) -> Ruleset:
    """The rules of a Session as a layer: it allows all but what they say."""
    return (*_ALLOW_ALL, *session) if session else ()


def strictest(decisions: Iterable[Decision]) -> Decision:
    """The first that denies, else the first that asks, else one that allows."""
    asked: Decision | None = None
    for decision in decisions:
        if decision.effect == "deny":
            return decision
        if decision.effect == "ask" and asked is None:
            asked = decision
    return asked or Decision("allow")


def decide_contained(
    decision: Decision, rules: Ruleset, *, action: str, parts: ResourceParts | None
) -> Decision:
    """The decision on a command in a sandbox: what no rule is about needs no question.

    A command that could not be read may contain what a rule does not allow.
    """
    if decision.effect != "ask" or decision.rule is not None:
        return decision
    complete = parts is None or parts.complete
    restricting = (rule for rule in rules if rule.effect != "allow")
    if complete or not any(wildcard.matches(rule.action, action) for rule in restricting):
        return Decision("allow")
    return decision


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


def _strictest(
    rules: Ruleset, action: str, resources: tuple[str, ...], names: FileNames = ANY_PLACE
) -> Decision:
    found = ((resource, matching_rule(rules, action, resource, names)) for resource in resources)
    return strictest(
        Decision("ask" if rule is None else rule.effect, resource, rule) for resource, rule in found
    )


def _decide_parts(
    agent_rules: Ruleset,
    approved: Ruleset,
    *,
    action: str,
    resources: tuple[str, ...],
    parts: ResourceParts,
) -> Decision:
    saved = {rule.resource for rule in approved if wildcard.matches(rule.action, action)}
    named = [(text, _narrow_rule(agent_rules, action, text)) for text in resources]
    spelled = (form for part in parts.parts for form in part.spellings)
    forms = [(text, _narrow_rule(agent_rules, action, text)) for text in spelled]
    for text, rule in (*named, *forms):
        if rule is not None and rule.effect == "deny":
            return Decision("deny", text, rule)
    left = [part for part in parts.parts if part.text not in saved and part.pattern not in saved]
    texts = tuple(part.text for part in left) if parts.parts else resources
    decided = _strictest(agent_rules, action, texts)
    if decided.effect == "deny":
        return decided
    if all(_is_named(text, rule, saved) for text, rule in named):
        return Decision("allow")
    for text, rule in named:
        if rule is not None and rule.effect == "ask":
            return Decision("ask", text, rule)
    if not parts.complete:
        return _decide_wide(agent_rules, action, resources)
    return _find_suspicion(agent_rules, action, left) or decided


def _is_named(text: str, rule: Rule | None, saved: set[str]) -> bool:
    """Whether a rule or an approval is exactly this text, which then must hold no wildcard."""
    allowed = rule is not None and rule.effect == "allow" and rule.resource == text
    return (allowed or text in saved) and not _WILDCARDS.search(text)


def _find_suspicion(rules: Ruleset, action: str, parts: Iterable[ResourcePart]) -> Decision | None:
    """The question about a part that may do what a rule does not allow."""
    for part in parts:
        for form in (*part.spellings, *part.suspected):
            rule = _narrow_rule(rules, action, form)
            if rule is not None and rule.effect != "allow":
                return Decision("ask", part.text, rule)
    return None


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
