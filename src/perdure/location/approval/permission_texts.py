"""Texts that tell a model why a permission was not given, and what would give it."""

from perdure.core.approval.rules import Decision
from perdure.ports import PermissionAsk


def denied(ask: PermissionAsk, decision: Decision) -> str:
    rule = decision.rule
    assert rule is not None, "only a rule denies"
    return (
        f"Denied by the rule {rule.action} {rule.resource}: agent {ask.agent!r} may not "
        f"{ask.action} {decision.resource}."
    )


def unattended(ask: PermissionAsk, decision: Decision) -> str:
    reason = f"{ask.action} {decision.resource} needs a person's approval, and nobody is there to "
    if ask.protected:
        return f"{reason}give it. It is protected: only a rule that names it would let it pass."
    return f"{reason}give it. A permission rule that allows it would let it pass."


def unanswered(ask: PermissionAsk) -> str:
    resources = ", ".join(ask.resources)
    return f"{ask.action} {resources} needs a person's approval, and nobody answered in time."
