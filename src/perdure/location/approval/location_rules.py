"""The rules of a Location's agents, and the decisions by them.

The agent of a call is judged by its own rules and by those of every agent that called it: the
strictest decision holds, so a subagent may never do more than its callers. A protected file also
needs a rule of the user's own documents that names it, or an approval of exactly that.

Invariant: nothing here asks a person or reads the store; the caller passes in saved approvals.
"""

import os
import posixpath
from collections.abc import Callable, Iterator
from typing import Final

from perdure.core.approval import file_names, protected_paths
from perdure.core.approval import rules as permission
from perdure.core.approval.file_names import ANY_PLACE, FILE_ACTIONS, FileNames
from perdure.core.approval.rules import Decision, Rules
from perdure.core.session import subagent
from perdure.core.text import wildcard
from perdure.host.files import cached_files
from perdure.ports import PermissionAsk
from perdure.schema.approval.permission import Effect, Ruleset
from perdure.schema.settings.agent import AgentInfo
from perdure.schema.value import State, Value

_JUDGES_KEPT_MAX: Final = 64

AgentRules = Callable[[str], Rules]
UsersRules = Callable[[str], Ruleset]


def no_rules(agent: str) -> Ruleset:
    return ()


class Judge(Value, kw_only=True):
    """The rules that decide on the calls of one agent, as they were at one moment."""

    rules: tuple[Rules, ...]
    """The agent's own, then those of the agents that called it, up to the root."""
    users: tuple[Ruleset, ...] = ()
    """For the same agents the rules of the user's own documents alone."""
    names: FileNames = ANY_PLACE
    session: Ruleset = ()
    """Those of the Session that have not expired."""

    def decide(self, ask: PermissionAsk, approvals: Ruleset = ()) -> Decision:
        decision = permission.strictest(
            self._decide_by(rules, ask, approvals) for rules in self.rules
        )
        if not ask.protected or decision.effect == "deny":
            return decision
        remembered = approvals if ask.save else ()
        unnamed = (it for it in ask.resources if not self._is_named(ask.action, it, remembered))
        return permission.strictest((decision, *(Decision("ask", it) for it in unnamed)))

    def _decide_by(self, rules: Rules, ask: PermissionAsk, approvals: Ruleset) -> Decision:
        return permission.decide(
            rules,
            approvals,
            action=ask.action,
            resources=ask.resources,
            parts=ask.parts,
            names=self.names,
            contained=ask.contained,
            session=self.session,
        )

    def effect(self, action: str, approvals: Ruleset = ()) -> Callable[[str], Effect]:
        """What the rules say to each resource of `action`."""
        concerned = [_concerning(rules, action) for rules in self.rules]
        session = tuple(rule for rule in self.session if wildcard.matches(rule.action, action))

        def decide(resource: str) -> Effect:
            return permission.strictest(
                permission.decide(
                    rules,
                    approvals,
                    action=action,
                    resources=(resource,),
                    names=self.names,
                    session=session,
                )
                for rules in concerned
            ).effect

        layers = [each for rules in concerned for each in permission.rulesets(rules)]
        if session:
            layers.append(permission.narrowing_rules(session))
        narrow = self._narrow_restrictions(layers)
        if narrow is None:
            return decide
        # A search decides on hundreds of thousands of files, most of which no such rule names.
        restricts = wildcard.compile_any(narrow)
        if restricts is None:
            return permission.allow_all
        match = restricts.fullmatch
        return lambda resource: decide(resource) if match(resource.replace("\\", "/")) else "allow"

    def _narrow_restrictions(self, sets: list[Ruleset]) -> list[str] | None:
        """The patterns outside of which all is allowed; None if there is no such list."""
        if self.names.ignores_case:
            return None
        narrow: list[str] = []
        for rules in sets:
            restricting = [r.resource for r in rules if r.effect != "allow" and r.resource != "*"]
            general = next((r for r in reversed(rules) if r.resource == "*"), None)
            absolute = any(pattern.startswith("/") for pattern in restricting)
            if general is None or general.effect != "allow" or absolute:
                return None
            narrow += restricting
        return narrow

    def is_open(self, action: str) -> bool:
        """Whether the rules leave a part of a resource to be looked at before they decide."""
        session = (permission.narrowing_rules(self.session),) if self.session else ()
        effects = {permission.common_effect(each, action) for each in (*self.rules, *session)}
        return not effects <= {"allow", "deny"}

    def _is_named(self, action: str, resource: str, approvals: Ruleset) -> bool:
        """Whether the user allowed to change this protected file, and meant it.

        What is not a file is named by a rule for its very action.
        """
        if action not in FILE_ACTIONS:
            return all(
                permission.evaluate(
                    tuple(rule for rule in (*rules, *approvals) if rule.action == action),
                    action,
                    resource,
                )
                == "allow"
                for rules in self.users
            )
        root = self.names.roots[0] if self.names.roots else ""
        path = posixpath.join(root, resource)
        for rules in self.users:
            rule = permission.matching_rule((*rules, *approvals), action, resource, self.names)
            if rule is None or rule.effect != "allow":
                return False
            if not protected_paths.is_named_by(rule.resource, path):
                return False
        return bool(self.users)


class _KeptJudge(State):
    """A judge with the rules that it was made of."""

    given: tuple[Rules, ...]
    users: tuple[Ruleset, ...]
    judge: Judge
    reading: Callable[[str], Effect] | None = None
    """What it says to reading each resource, once that was asked."""


class LocationRules:
    """`rules` and `users` give the rules of an agent by name."""

    def __init__(
        self, rules: AgentRules, *, users: UsersRules = no_rules, directory: str | None = None
    ) -> None:
        self._rules = rules
        self._users = users
        self._directory = directory
        self._names: FileNames | None = ANY_PLACE if directory is None else None
        self._kept: dict[tuple[str, tuple[str, ...]], _KeptJudge] = {}
        """By agent, then those above it. Only of rules that name no path: no link changes these."""

    def judge(self, agent: str, above: tuple[str, ...] = (), session: Ruleset = ()) -> Judge:
        """The rules for calls of `agent`, which the agents `above` called, in a Session."""
        if session:
            return self._make_judge(*self._given(agent, above), session)
        return self._keep_judge(agent, above).judge

    def _keep_judge(self, agent: str, above: tuple[str, ...]) -> _KeptJudge:
        """The judge without rules of a Session, made anew when the rules have changed."""
        given, users = self._given(agent, above)
        kept = self._kept.get((agent, above))
        if kept is not None and kept.given == given and kept.users == users:
            return kept
        made = _KeptJudge(given, users, self._make_judge(given, users))
        if not any(map(file_names.names_path, (*_all_rulesets(given), *users))):
            if len(self._kept) >= _JUDGES_KEPT_MAX:
                self._kept.clear()
            self._kept[agent, above] = made
        return made

    def _given(
        self, agent: str, above: tuple[str, ...]
    ) -> tuple[tuple[Rules, ...], tuple[Ruleset, ...]]:
        """The rules as they are written: all of them, and those of the user alone."""
        given = (self._rules(agent), *subagent.inherited_rules(above, self._rules))
        return given, tuple(self._users(name) for name in (agent, *above))

    def _make_judge(
        self, given: tuple[Rules, ...], users: tuple[Ruleset, ...], session: Ruleset = ()
    ) -> Judge:
        return Judge(
            rules=tuple(permission.map_rulesets(rules, self._with_links) for rules in given),
            users=tuple(self._with_links((*each, *session)) for each in users),
            names=self.names,
            session=self._with_links(session),
        )

    def reading(
        self, agent: AgentInfo | None, above: tuple[str, ...] = (), session: Ruleset = ()
    ) -> Callable[[str], Effect]:
        """What the rules alone say to reading each canonical path.

        Without an agent there is no turn, and nothing is shown to a model.
        """
        if agent is None:
            return permission.allow_all
        if session:
            effect = self.judge(agent.id, above, session).effect("read")
        else:
            kept = self._keep_judge(agent.id, above)
            effect = kept.reading = kept.reading or kept.judge.effect("read")
        return lambda real_path: effect(self.names.resource(real_path))

    @property
    def names(self) -> FileNames:
        # Resolved once: a link that is changed later cannot move the boundary.
        if self._names is None:
            given = posixpath.normpath(self._directory or "/")
            real = os.path.realpath(given)
            ignores_case = cached_files.ignores_case(real)
            self._names = FileNames(roots=(real, given), ignores_case=ignores_case)
        return self._names

    def _with_links(self, rules: Ruleset) -> Ruleset:
        if self._directory is None:
            return rules
        return file_names.restrict_real_paths(rules, self._directory, os.path.realpath)


def _all_rulesets(given: tuple[Rules, ...]) -> Iterator[Ruleset]:
    return (each for rules in given for each in permission.rulesets(rules))


def _concerning(rules: Rules, action: str) -> Rules:
    """The rules that can say something about an action."""

    def select(each: Ruleset) -> Ruleset:
        return tuple(rule for rule in each if wildcard.matches(rule.action, action))

    return permission.map_rulesets(rules, select)
