"""The table of durable events: complete, versioned by name, and readable for ever."""

from typing import get_args

import msgspec
import pytest

from perdure.schema import codec, live_event, manifest
from perdure.schema.codec import JsonObject
from perdure.schema.manifest import Definition
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent
from tests.fixtures import Facts
from tests.requirements import requirement

KINDS = get_args(SessionEvent)


@requirement("S153")
def test_every_durable_event_is_in_the_table_exactly_once() -> None:
    shapes = [definition.shape for definition in manifest.DEFINITIONS]
    assert sorted(shapes, key=repr) == sorted(KINDS, key=repr)
    assert len(shapes) == len(set(shapes))


@requirement("S152", "S153")
def test_no_live_fragment_has_a_durable_form() -> None:
    live = set(get_args(live_event.LiveEvent))
    assert live.isdisjoint(KINDS)
    names = {definition.type for definition in manifest.DEFINITIONS}
    assert names.isdisjoint(live_event.LIVE_TYPES.values())
    assert not any(name.endswith(".delta") for name in names)


@requirement("S73")
def test_admission_and_promotion_have_their_stored_names() -> None:
    assert manifest.BY_SHAPE[events.PromptAdmitted].stored == "session.next.prompt.admitted.1"
    assert manifest.BY_SHAPE[events.PromptPromoted].stored == "session.next.prompted.1"


@requirement("S157")
def test_only_the_end_of_a_step_is_at_version_two() -> None:
    second = {item.stored for item in manifest.DEFINITIONS if item.version == 2}
    assert second == {"session.next.step.ended.2", "session.next.step.failed.2"}
    for shape in (events.StepEnded, events.StepFailed):
        assert "assistantMessageID" in shape.__struct_encode_fields__


@requirement("S153")
def test_readers_of_the_public_stream_see_all_but_the_creation() -> None:
    hidden = {name for name, item in manifest.BY_STORED.items() if not item.followed}
    assert hidden == {"session.created.1"}


@requirement("S155")
def test_an_event_is_encoded_to_be_stored_and_decoded_to_the_same_value() -> None:
    event = Facts().admitted("msg_1", "naïve ☃ \u2028 text")
    stored = manifest.definition_of(event).stored
    assert manifest.decode(stored, codec.encode(event)) == event


@pytest.mark.parametrize(
    "name",
    ["", "session.next.step.ended.1", "session.next.step.ended.3", "session.next.text.delta.1"],
)
def test_a_stored_name_that_is_not_known_is_named_in_the_error(name: str) -> None:
    with pytest.raises(manifest.UnknownEventError, match=repr(name)):
        manifest.decode(name, b"{}")


def test_a_stored_payload_that_does_not_fit_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        manifest.decode("session.next.text.ended.1", b'{"timestamp":"yesterday"}')


def test_the_same_stored_name_twice_is_a_mistake_in_the_table() -> None:
    twice = Definition("session.next.retried", 1, events.Retried)
    with pytest.raises(ValueError, match="twice"):
        manifest.index((twice, twice))


def test_the_highest_version_is_current_wherever_it_stands() -> None:
    second = Definition("session.next.step.ended", 2, events.StepEnded)
    first = Definition("session.next.step.ended", 1, events.StepEnded)
    assert manifest.latest((second, first)) == manifest.latest((first, second))
    assert manifest.latest((second, first))[events.StepEnded] is second


def _renamed(old: JsonObject) -> JsonObject:
    return {("text" if key == "value" else key): value for key, value in old.items()}


def _with_part(old: JsonObject) -> JsonObject:
    return {**old, "textID": "text-0"}


TABLE = manifest.index((Definition("made.up", 3, events.TextEnded),))
UPCASTS = {"made.up.1": _renamed, "made.up.2": _with_part}


@requirement("S155")
@pytest.mark.parametrize(
    ("stored", "given"),
    [
        ("made.up.1", {"value": "hi"}),
        ("made.up.2", {"text": "hi"}),
        ("made.up.3", {"text": "hi", "textID": "text-0"}),
    ],
)
def test_an_event_of_any_earlier_version_is_read_in_its_current_shape(
    stored: str, given: JsonObject
) -> None:
    common = {"timestamp": 1, "sessionID": "ses_one", "assistantMessageID": "msg_1"}
    data = codec.encode({**common, **given})
    lifted = manifest.decode_with(TABLE, UPCASTS, stored, data)
    assert isinstance(lifted, events.TextEnded)
    assert (lifted.text, lifted.text_id) == ("hi", "text-0")


def test_an_upcast_that_leads_nowhere_is_an_unknown_event() -> None:
    with pytest.raises(manifest.UnknownEventError, match=r"made\.up\.4"):
        manifest.decode_with(TABLE, {"made.up.3": _renamed}, "made.up.3", b"{}")
