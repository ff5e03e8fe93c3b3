"""Identifiers: their shape, their order, and the ids that callers bring."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.schema import ids
from tests.requirements import requirement

YEAR_2500_MILLIS = 16_725_225_600_000
LAST_MILLIS = (1 << 48) // ids.TICKS_PER_MILLI - 1


@given(
    tick=st.integers(0, (1 << 48) - 1),
    entropy=st.integers(0, ids.ENTROPY_SPAN - 1),
    descending=st.booleans(),
)
def test_an_id_is_its_prefix_and_26_characters(
    tick: int, entropy: int, *, descending: bool
) -> None:
    made = ids.compose("msg", tick=tick, entropy=entropy, descending=descending)
    prefix, _, body = made.partition("_")
    assert (prefix, len(body)) == ("msg", 26)
    assert ids.well_formed("msg", made)


@given(
    first=st.integers(0, LAST_MILLIS - 1),
    later=st.integers(1, 10_000_000),
    entropy=st.integers(0, ids.ENTROPY_SPAN - 1),
)
def test_a_later_id_sorts_after_and_a_later_session_before(
    first: int, later: int, entropy: int
) -> None:
    ticks = [milli * ids.TICKS_PER_MILLI for milli in (first, min(first + later, LAST_MILLIS))]
    messages = [ids.compose("msg", tick=tick, entropy=entropy) for tick in ticks]
    sessions = [ids.compose("ses", tick=tick, entropy=0, descending=True) for tick in ticks]
    assert messages == sorted(messages)
    assert sessions == sorted(sessions, reverse=True)


def test_time_in_an_id_does_not_wrap_for_centuries() -> None:
    now = ids.compose("evt", tick=1_800_000_000_000 * ids.TICKS_PER_MILLI, entropy=0)
    far = ids.compose("evt", tick=YEAR_2500_MILLIS * ids.TICKS_PER_MILLI, entropy=0)
    assert LAST_MILLIS > YEAR_2500_MILLIS
    assert now < far


@given(st.integers(0, ids.ENTROPY_SPAN - 2))
def test_neighbouring_entropies_make_different_ids(entropy: int) -> None:
    made = {ids.compose("msg", tick=1, entropy=entropy + offset) for offset in (0, 1)}
    assert len(made) == 2


@requirement("S156")
def test_one_outside_key_names_the_same_thing_every_time() -> None:
    assert ids.session_from_external("slack:42") == ids.session_from_external("slack:42")
    assert ids.message_from_external("slack:42") == ids.message_from_external("slack:42")


@requirement("S156")
def test_an_outside_key_gives_an_unrelated_id_for_each_kind() -> None:
    made = [
        ids.session_from_external("k"),
        ids.message_from_external("k"),
    ]
    assert [one[:4] for one in made] == ["ses_", "msg_"]
    assert len({one[4:] for one in made}) == 2


@requirement("S156")
@given(st.text(), st.text())
def test_different_outside_keys_give_different_well_formed_ids(one: str, other: str) -> None:
    first, second = (ids.session_from_external(key) for key in (one, other))
    assert (first == second) is (one == other)
    assert ids.well_formed("ses", first)


@pytest.mark.parametrize(
    "text",
    ["ses_a", "ses_" + "x" * ids.BODY_CHARS_MAX, "ses_a.b-c_D9", "ses_" + "0" * 26],
)
def test_an_id_made_by_a_caller_is_accepted_within_bounds(text: str) -> None:
    assert ids.well_formed("ses", text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ses",
        "ses_",
        "msg_a",
        "SES_a",
        "ses_a\n",
        "ses_a b",
        'ses_"',
        "ses_é",
        "ses_../x",
        "ses_" + "x" * (ids.BODY_CHARS_MAX + 1),
        " ses_a",
    ],
)
def test_anything_else_is_no_id(text: str) -> None:
    assert not ids.well_formed("ses", text)
