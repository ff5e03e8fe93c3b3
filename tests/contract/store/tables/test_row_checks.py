"""A row that cannot be read is told by its Session, table and sequence, and by what is wrong."""

from collections.abc import Callable

import pytest

from perdure.ports import SqlValue
from perdure.schema import codec, manifest
from perdure.schema.errors import DamagedRowError
from perdure.schema.session.event import ContextUpdated
from perdure.schema.session.session import SessionInfo
from perdure.store.tables import row_checks
from tests.fixtures import OTHER, SESSION, Facts

Read = Callable[[SqlValue], object]
STORED = manifest.BY_SHAPE[ContextUpdated].stored


def as_json(value: SqlValue) -> object:
    return row_checks.require_json(value, SESSION, table="t", seq=7)


def as_session(value: SqlValue) -> object:
    return row_checks.decode_row(SessionInfo, value, SESSION, table="t", seq=7)


def as_event(value: SqlValue) -> object:
    return row_checks.decode_event(STORED, value, SESSION, seq=7)


@pytest.mark.parametrize("read", [as_json, as_session, as_event])
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "found nothing"),
        ("{}", "found str"),
        (3, "found int"),
        (b"", "truncated"),
        (b'{"a":1', "truncated"),
        (b'{"a":1} {', "trailing"),
        (b'"\xff"', "utf-8"),
        (b"[" * 100_000, "recursion"),
    ],
)
def test_what_is_no_json_is_told(read: Read, value: SqlValue, reason: str) -> None:
    with pytest.raises(DamagedRowError) as caught:
        read(value)
    assert (caught.value.session_id, caught.value.seq) == (SESSION, 7)
    if read is as_json:
        assert reason in str(caught.value).lower()


@pytest.mark.parametrize("read", [as_session, as_event])
def test_json_of_something_else_is_told(read: Read) -> None:
    with pytest.raises(DamagedRowError):
        read(b'{"something":"else"}')


def test_json_is_handed_out_as_it_was_found() -> None:
    assert as_json(b' {"a" : 1} ') == b' {"a" : 1} '


def test_an_event_speaks_of_its_own_session() -> None:
    told = Facts().told("msg_1")
    data = codec.encode(told)
    assert as_event(data) == told
    with pytest.raises(DamagedRowError, match=f"names session {SESSION}"):
        row_checks.decode_event(STORED, data, OTHER, seq=7)
    with pytest.raises(DamagedRowError):
        row_checks.decode_event("session.unheard.of.1", data, SESSION, seq=7)


def test_the_name_of_an_event_is_known_now_or_was() -> None:
    for name in (STORED, *manifest.UPCASTS):
        assert row_checks.require_event_name(name, SESSION, seq=7) == name
    with pytest.raises(DamagedRowError):
        row_checks.require_event_name("session.unheard.of.1", SESSION, seq=7)
