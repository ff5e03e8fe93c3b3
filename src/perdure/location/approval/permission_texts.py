"""Texts that tell a model why a permission was not given, and what would give it."""

from collections.abc import Mapping
from typing import Final

from perdure.core.approval.rules import Decision, Layer
from perdure.ports import PermissionAsk

_OWNERS: Final[Mapping[Layer, str]] = {
    "managed": "the managed configuration",
    "user": "the user's configuration",
    "project": "the project's configuration",
}


def denied(ask: PermissionAsk, decision: Decision) -> str:
    rule = decision.rule
    assert rule is not None, "only a rule denies"
    owner = "" if decision.layer is None else f" of {_OWNERS[decision.layer]}"
    return (
        f"Denied by the rule {rule.action} {rule.resource}{owner}: agent {ask.agent!r} may not "
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
