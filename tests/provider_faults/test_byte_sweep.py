"""An answer that goes wrong at any byte: one settlement, no half call, and the Session goes on.

The answer is cut at every byte, and damaged in each other way at every few (`PERDURE_EVERY`: 1 is
every byte). Each fault is met by a Session of its own in a runtime that has met many before.
"""

import os
import zlib
from collections.abc import Callable
from typing import Final

import pytest

from perdure.testing import provider_answer
from perdure.testing.provider_answer import Close, Ending, ProviderAnswer, Reset, Stall
from tests.figures import Figure
from tests.provider_faults.recording import BODY, NOTES
from tests.provider_faults.sweep import FRAME_BYTES_MAX, HASTY, PATIENT, QUIET_BYTES_MAX, Sweep

CHUNKED: Final = ProviderAnswer(body=BODY)
OPEN_ENDED: Final = ProviderAnswer(body=BODY, framing="until-close")
EVERY: Final = int(os.environ.get("PERDURE_EVERY", "7"))
SHARDS: Final = 4
FINISH_AT: Final = BODY.index(b"\n\n", BODY.index(b"finish_reason")) + 2
FAULTS: Final = "faults of a provider"


def offsets(size: int, shard: int) -> range:
    return range(shard, size, SHARDS)


async def test_without_a_fault_both_calls_are_run_and_the_answer_goes_on(sweep: Sweep) -> None:
    for answer in (CHUNKED, OPEN_ENDED):
        met = await sweep.meet(answer)
        met.check(answer)
        assert (met.notes, met.error, met.attempts) == (NOTES, "", 1)


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_a_connection_closed_at_any_byte_is_a_failed_step(
    sweep: Sweep, shard: int, figure: Figure
) -> None:
    response = CHUNKED.response()
    calls_complete = _wire_offset(response, FINISH_AT)
    done = _wire_offset(response, len(BODY))
    ats = [*offsets(len(response), shard)]
    answers = [ProviderAnswer(body=BODY, ending=Close(at=at)) for at in ats]
    for at, met in zip(ats, await sweep.meet_all(answers, model=PATIENT), strict=True):
        met.check(at)
        assert met.attempts == (1 if met.called else 3), at
        assert met.notes == (NOTES if at >= calls_complete else []), at
        assert bool(met.error) == (at < done), at
    figure(FAULTS, len(ats))


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_a_body_that_just_ends_is_whole_only_after_its_finish_reason(
    sweep: Sweep, shard: int, figure: Figure
) -> None:
    head = len(OPEN_ENDED.head())
    ats = [*offsets(len(OPEN_ENDED.response()), shard)]
    answers = [ProviderAnswer(body=BODY, framing="until-close", ending=Close(at=at)) for at in ats]
    for at, met in zip(ats, await sweep.meet_all(answers, model=PATIENT), strict=True):
        met.check(at)
        assert met.attempts == (1 if met.called else 3), at
        # The event counts although its blank line did not come.
        whole = at - head >= FINISH_AT - len(b"\n\n")
        assert met.notes == (NOTES if whole else []), at
        assert bool(met.error) == (not whole), at
    figure(FAULTS, len(ats))


def _wire_offset(response: bytes, body_offset: int) -> int:
    """Where in the chunked response the body has come so far."""
    position = response.index(b"\r\n\r\n") + 4
    while True:
        size_end = response.index(b"\r\n", position)
        size = int(response[position:size_end], 16)
        if body_offset <= size:
            return size_end + 2 + body_offset
        body_offset -= size
        position = size_end + 2 + size + 2


ENDINGS: Final[tuple[tuple[Callable[[int], Ending], str], ...]] = ((Reset, PATIENT), (Stall, HASTY))


@pytest.mark.parametrize(("ending", "model"), ENDINGS)
async def test_a_reset_or_a_silence_at_any_place_is_a_failed_step(
    sweep: Sweep, ending: Callable[[int], Ending], model: str, figure: Figure
) -> None:
    size = len(CHUNKED.response())
    done = _wire_offset(CHUNKED.response(), len(BODY))
    ats = [*range(0, size, EVERY), size - 1]
    answers = [ProviderAnswer(body=BODY, ending=ending(at)) for at in ats]
    for at, met in zip(ats, await sweep.meet_all(answers, model=model), strict=True):
        met.check(at)
        assert met.notes in ([], NOTES), at
        assert bool(met.error) == (at < done), at
    figure("silences of a provider" if ending is Stall else FAULTS, len(ats))


DAMAGES: Final[dict[str, Callable[[int], bytes]]] = {
    "garbage": lambda at: provider_answer.with_garbage(BODY, at),
    "a frame of garbage": lambda at: provider_answer.with_garbage(BODY, at, b"\n\ndata: }{\n\n"),
    "null bytes": lambda at: provider_answer.with_garbage(BODY, at, b"\0" * 64),
    "a frame twice": lambda at: provider_answer.with_repeated_frame(BODY, at),
    "one huge line": lambda at: provider_answer.with_garbage(BODY, at, b"x" * FRAME_BYTES_MAX),
    "lines without data": lambda at: provider_answer.with_garbage(
        BODY, at, b"\n" + b"data:\n" * (FRAME_BYTES_MAX // 4)
    ),
    "comments without end": lambda at: provider_answer.with_garbage(
        BODY, at, b"\n: wait" * (QUIET_BYTES_MAX // 6)
    ),
    "an error object": lambda at: provider_answer.with_garbage(
        BODY, at, b'\n\ndata: {"error":{"message":"overloaded"}}\n\n'
    ),
}


BOUNDED: Final = frozenset({"one huge line", "comments without end"})
"""Faults that a limit ends: asking again would bring the same."""


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_body_is_understood_or_refused_as_a_whole(
    sweep: Sweep, damage: str, figure: Figure
) -> None:
    ats = [*range(0, len(BODY), EVERY)]
    answers = [ProviderAnswer(body=DAMAGES[damage](at)) for at in ats]
    for at, met in zip(ats, await sweep.meet_all(answers, model=PATIENT), strict=True):
        met.check((damage, at))
        assert met.attempts == 1 or not met.published, at
        assert met.attempts == 1 or damage not in BOUNDED, at
    figure(FAULTS, len(ats))


HARMLESS: Final[dict[str, bytes]] = {
    "lf": BODY,
    "crlf": provider_answer.with_line_ends(BODY, b"\r\n"),
    "no done": provider_answer.without_done(BODY),
    "keep-alives": BODY.replace(b"\n\n", b"\n\n: keep-alive\n\n"),
}


@pytest.mark.parametrize("form", HARMLESS)
async def test_however_an_answer_is_cut_into_pieces_it_is_the_same(
    sweep: Sweep, form: str, figure: Figure
) -> None:
    """In the middle of a character as well; with other line ends, or without its last frame."""
    body = HARMLESS[form]
    size = len(ProviderAnswer(body=body).response())
    answers = [ProviderAnswer(body=body, pieces=(at, at + 1)) for at in range(0, size, EVERY)]
    for number, met in enumerate(await sweep.meet_all(answers, model=PATIENT)):
        met.check((form, number))
        assert (met.notes, met.error) == (NOTES, ""), (form, number)
    figure(FAULTS, len(answers))


async def test_a_compressed_body_that_is_cut_off_is_a_failed_step(
    sweep: Sweep, figure: Figure
) -> None:
    whole = provider_answer.compressed(BODY)
    assert (await sweep.meet(whole)).notes == NOTES
    keeps = [*range(0, len(whole.body), EVERY)]
    answers = [provider_answer.compressed(BODY, keep=keep) for keep in keeps]
    for keep, met in zip(keeps, await sweep.meet_all(answers, model=PATIENT), strict=True):
        met.check(keep)
        inflated = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(whole.body[:keep])
        assert bool(met.error) == (inflated != BODY), keep
    figure(FAULTS, len(keeps))


async def test_a_page_of_html_is_named_and_not_tried_again(sweep: Sweep) -> None:
    met = await sweep.meet(provider_answer.page(title="Hotel Wi-Fi"))
    met.check("html")
    assert (met.attempts, met.published) == (1, False)
    assert "Hotel Wi-Fi" in met.error
