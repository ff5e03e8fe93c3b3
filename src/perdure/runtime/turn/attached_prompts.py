"""Promotions with what is told of their attachments, read now and once.

Between planning a boundary and committing it: what was read is committed with the promotion or not
at all, and the next attempt reads again. Reading may take a while and can be interrupted.
"""

from msgspec.structs import replace

from perdure.location.workspace.attachments import AttachmentContext, Attachments
from perdure.runtime.turn.boundary import BoundaryPlan
from perdure.schema.session.event import PromptPromoted, SessionEvent


async def with_content(plan: BoundaryPlan, attachments: Attachments, agent: str) -> BoundaryPlan:
    facts = [await _told(fact, attachments, agent) for fact in plan.facts]
    return replace(plan, facts=tuple(facts))


async def _told(fact: SessionEvent, attachments: Attachments, agent: str) -> SessionEvent:
    if not isinstance(fact, PromptPromoted):
        return fact
    listener = AttachmentContext(
        session_id=fact.session_id, message_id=fact.message_id, agent=agent
    )
    told = await attachments.read(fact.prompt, listener)
    return replace(fact, attached=told) if told else fact
