"""Changes the permission rules of a Session and of all below it.

A child gets the rules of its parent when it is created (runtime.background.subagents), and again
when they change, so that what a person forbids holds for subagents that run already.
"""

from perdure.core import limits
from perdure.schema import codec
from perdure.schema.approval.permission import SessionRules
from perdure.schema.errors import InvalidRequestError
from perdure.schema.ids import SessionID
from perdure.schema.session.event import RulesChanged
from perdure.store.log.event_store import EventStore
from perdure.store.tables import session_table


async def replace_rules(
    store: EventStore, session_id: SessionID, rules: SessionRules, *, now: int
) -> None:
    """Replace the rules of a Session and of those below it; none removes them."""
    check_rules(rules)
    below = await store.database.read(lambda tx: session_table.descendants(tx, session_id))
    for each in (session_id, *below):
        session = await store.load_session(each)
        if (session.permissions or ()) != rules:
            event = RulesChanged(timestamp=now, session_id=each, rules=rules)
            await store.append(each, [event], location=session.location)


def check_rules(rules: SessionRules) -> None:
    """Raises InvalidRequestError if there are too many."""
    if len(rules) > limits.SESSION_RULES_MAX:
        raise _refused(f"A Session has at most {limits.SESSION_RULES_MAX} permission rules")
    if len(codec.encode(rules)) > limits.PERMISSION_INPUT_BYTES_MAX:
        most = limits.PERMISSION_INPUT_BYTES_MAX
        raise _refused(f"The permission rules of a Session have at most {most} bytes")
    if any(not rule.action or not rule.resource for rule in rules):
        raise _refused("A permission rule has an action and a resource; `*` stands for all")


def _refused(message: str) -> InvalidRequestError:
    return InvalidRequestError(message, kind="Payload", field="permissions")
