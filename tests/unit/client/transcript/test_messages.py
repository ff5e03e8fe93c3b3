"""A client's fold of events gives the messages and the inbox that the server's projection has."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given, settings
from msgspec import UNSET

from perdure.client.transcript.messages import Messages
from perdure.client.transcript.session import SessionView
from perdure.schema import codec, manifest
from perdure.schema.codec import JsonObject
from perdure.schema.session.event import SessionEvent
from tests.contract.store.log import test_projector as projector_tests
from tests.contract.store.log.folded import Folded, fold
from tests.fixtures import SESSION, Facts

NAMES = {definition.shape: definition.type for definition in manifest.DEFINITIONS}


def as_wire(seq: int, event: SessionEvent) -> JsonObject:
    return {
        "id": f"evt_{seq}",
        "type": NAMES[type(event)],
        "data": codec.to_json_value(event),
        "durable": {"aggregateID": SESSION, "seq": seq, "version": 1},
    }


def without_cursors(value: Any) -> Any:
    """A part that is open has a cursor here; in the log it has none."""
    if isinstance(value, dict):
        found = cast("JsonObject", value)
        return {name: without_cursors(it) for name, it in found.items() if name != "cursor"}
    if isinstance(value, list):
        return [without_cursors(item) for item in cast("list[Any]", value)]
    return value


def projected(folded: Folded) -> list[JsonObject]:
    in_order = sorted(folded.messages.values(), key=lambda item: item[0])
    return [codec.to_json_value(message) for _, message in in_order]


def shown(log: list[SessionEvent]) -> list[JsonObject]:
    messages = Messages()
    for seq, event in enumerate(log):
        messages.apply(as_wire(seq, event))
    return without_cursors(list(messages))


@pytest.mark.parametrize("make", projector_tests.CORPUS, ids=lambda make: make.__name__)
def test_every_kind_of_event_changes_messages_as_the_server_does(
    make: Callable[[Facts], list[SessionEvent]],
) -> None:
    facts = Facts()
    log = [facts.created(), *make(facts)]
    # An exclusion moves the message in the plain fold, which no list of messages does.
    expected = {message["id"]: message for message in projected(fold(log))}
    assert {message["id"]: message for message in shown(log)} == expected


@settings(max_examples=60, deadline=None)
@given(projector_tests.logs())
def test_any_valid_log_gives_the_messages_of_the_server(log: list[SessionEvent]) -> None:
    assert shown(log) == projected(fold(log))


@settings(max_examples=40, deadline=None)
@given(projector_tests.logs())
def test_any_valid_log_gives_the_inbox_and_the_cost_of_the_server(log: list[SessionEvent]) -> None:
    expected = fold(log)
    assert expected.session is not None
    view = SessionView(snapshot(codec.to_json_value(fold(log[:1]).session)))
    for seq, event in enumerate(log):
        view.apply(as_wire(seq, event))
    session = codec.to_json_value(expected.session)
    assert (view.info["cost"], view.info["tokens"]) == (session["cost"], session["tokens"])
    if not any(event["type"].endswith("revert.committed") for event in map(as_wire, *both(log))):
        waiting = [item.id for item in expected.inbox.values() if item.promoted_seq is UNSET]
        assert [item["id"] for item in view.inbox] == waiting


def both(log: list[SessionEvent]) -> tuple[list[int], list[SessionEvent]]:
    return list(range(len(log))), log


def snapshot(info: JsonObject, *messages: JsonObject, seq: int = -1) -> JsonObject:
    return {
        "session": info,
        "messages": list(messages),
        "inbox": [],
        "seq": seq,
        "cursor": {},
    }


def test_an_event_that_is_told_again_changes_nothing() -> None:
    facts = Facts()
    log = [facts.created(), *projector_tests.text_and_tools(facts)]
    view = SessionView(snapshot(codec.to_json_value(fold(log[:1]).session)))
    for seq, event in enumerate(log):
        view.apply(as_wire(seq, event))
    cost = view.info["cost"]
    for seq, event in enumerate(log):
        assert view.apply(as_wire(seq, event)) is None
    assert view.info["cost"] == cost
    assert len(view.messages) == 3


def delta(cursor: int, text: str) -> JsonObject:
    data = {"assistantMessageID": "msg_1", "textID": "t", "delta": text, "cursor": cursor}
    return {"id": "evt", "type": "session.next.text.delta", "data": data}


def test_fragments_that_a_snapshot_contains_are_not_added_again() -> None:
    part = {"type": "text", "id": "t", "text": "one two", "cursor": 2}
    messages = Messages([{"type": "assistant", "id": "msg_1", "time": {}, "content": [part]}])
    assert messages.apply(delta(2, " two")) is None
    assert messages.apply(delta(3, " three")) == "msg_1"
    assert part["text"] == "one two three"


def test_a_fragment_of_a_part_that_has_ended_is_ignored() -> None:
    facts = Facts()
    messages = Messages()
    for seq, event in enumerate([facts.step("msg_1"), *facts.text("msg_1", "t", "whole")]):
        messages.apply(as_wire(seq, event))
    assert messages.apply(delta(1, "late")) is None
    assert shown([facts.step("msg_1"), *facts.text("msg_1", "t", "whole")])[0]["content"] == [
        {"type": "text", "id": "t", "text": "whole"}
    ]


def test_earlier_pages_stand_before_and_never_twice() -> None:
    messages = Messages([{"id": "msg_3"}, {"id": "msg_4"}])
    assert messages.add_earlier([{"id": "msg_2"}, {"id": "msg_3"}]) == [{"id": "msg_2"}]
    assert [message["id"] for message in messages] == ["msg_2", "msg_3", "msg_4"]


def test_the_order_of_the_inbox_is_that_of_the_last_reordering() -> None:
    facts = Facts()
    log = [facts.created(), *projector_tests.changed(facts)]
    view = SessionView(snapshot(codec.to_json_value(fold(log[:1]).session)))
    for seq, event in enumerate(log[:6]):
        view.apply(as_wire(seq, event))
    assert [item["id"] for item in view.inbox] == ["msg_3", "msg_1", "msg_2"]
    assert view.inbox[2]["prompt"]["text"] == "said otherwise"


def test_requests_wait_until_any_client_answers() -> None:
    facts = Facts()
    view = SessionView(snapshot(codec.to_json_value(fold([facts.created()]).session)))
    asked = {"id": "per_1", "sessionID": SESSION, "action": "bash", "resources": ["ls"]}
    view.apply({"id": "evt_1", "type": "permission.v2.asked", "data": asked})
    view.add_requests([asked])
    assert list(view.requests) == ["per_1"]
    replied = {"sessionID": SESSION, "requestID": "per_1", "reply": "once"}
    view.apply({"id": "evt_2", "type": "permission.v2.replied", "data": replied})
    assert view.requests == {}
