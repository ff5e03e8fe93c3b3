"""New ids for an exported Session, so that a copy can stand beside the original.

The new ids follow from the old ones: copying twice gives the same copy.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final

from perdure.core.text import jsonc
from perdure.schema import ids
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.ids import MessageID, SessionID

_MESSAGE_KEY: Final = "essageID"
"""How the keys end whose value is the id of a message: `messageID`, `assistantMessageID`."""


_COPIED: Final = ("session", "events")


def copy(exported: Mapping[str, JsonValue]) -> JsonObject:
    """The Session and the events of an export, under the ids of its copy."""
    old = SessionID(exported["session"]["id"])
    new = ids.session_from_external(f"copy of {old}")
    renamed: dict[str, str] = {str(old): str(new)}
    for event in exported["events"]:
        renamed[event["id"]] = _copied_event(event["id"], new)
        for message in _message_ids(event["data"]):
            renamed[message] = ids.copied_message(MessageID(message), into=new)
    return {name: _renamed(exported[name], renamed) for name in _COPIED}


def _copied_event(event_id: str, into: SessionID) -> str:
    digest = hashlib.sha256(f"{into}\x00{event_id}".encode()).hexdigest()
    return f"evt_{digest}"


def _message_ids(value: JsonValue) -> Iterator[str]:
    """The ids of messages that a value names, at any depth."""
    if jsonc.is_object(value):
        for key, inside in value.items():
            if isinstance(inside, str):
                if key.endswith(_MESSAGE_KEY) and ids.well_formed("msg", inside):
                    yield inside
            else:
                yield from _message_ids(inside)
    elif jsonc.is_list(value):
        for inside in value:
            yield from _message_ids(inside)


def _renamed(value: JsonValue, names: Mapping[str, str]) -> JsonValue:
    """A value in which each text that is an id of the map is replaced; keys stay."""
    if isinstance(value, str):
        return names.get(value, value)
    if jsonc.is_object(value):
        return {key: _renamed(inside, names) for key, inside in value.items()}
    if jsonc.is_list(value):
        return [_renamed(inside, names) for inside in value]
    return value
