"""Media within what a provider takes: shrunk or named when it is sent, the history untouched."""

from collections.abc import Callable

import pytest

from perdure.core.request import media_limits, message_media
from perdure.core.request.media_limits import ImageBounds, MediaLimits
from perdure.llm.encoded_history import EncodedHistory
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    TextPart,
    ToolCallPart,
    ToolResult,
    ToolResultPart,
    split_segments,
)
from perdure.runtime.turn.history_cache import History, MediaSent
from perdure.runtime.turn.media import RequestMedia
from tests.support.inputs.images import bomb, inlined, opened, picture

ANYTHING = media_limits.limits_for("openai")


def conversation(*media: MediaPart) -> History:
    """Each second one is attached by the user, the others come from a tool."""
    messages: list[LLMMessage] = []
    for number, part in enumerate(media):
        if number % 2 == 0:
            messages.append(LLMMessage("user", (TextPart(f"prompt {number}"), part)))
            continue
        call = ToolCallPart(f"call_{number}", "read", {})
        result = ToolResult("content", [TextPart(f"result {number}"), part])
        messages.append(LLMMessage("assistant", (call,)))
        messages.append(LLMMessage("tool", (ToolResultPart(call.id, "read", result),)))
    sent = MediaSent(there=message_media.has_media(messages))
    return History(split_segments(tuple(messages)), EncodedHistory(), media=sent)


def shown(history: History) -> list[MediaPart]:
    return [part for run in history.runs for part in message_media.media_of(run.messages)]


def texts(history: History) -> str:
    parts: list[str] = []
    for message in (message for run in history.runs for message in run.messages):
        for part in message.content:
            items = part.result.value if isinstance(part, ToolResultPart) else [part]
            parts += [item.text for item in items if isinstance(item, TextPart)]
    return "\n".join(parts)


def png(width: int = 30, height: int = 20, colour: str = "red") -> MediaPart:
    return MediaPart("image/png", inlined(picture(width, height, colour=colour)), "a.png")


async def test_what_fits_is_sent_as_it_is() -> None:
    history = conversation(png(), png(colour="blue"))
    assert shown(await RequestMedia().within(history, ANYTHING)) == shown(history)


async def test_a_conversation_without_media_is_the_very_same() -> None:
    history = conversation()
    assert await RequestMedia().within(history, ANYTHING) is history


async def test_a_large_image_is_shrunk_and_the_history_is_not() -> None:
    large = png(2_600, 1_300)
    history = conversation(png(), large)
    sent = await RequestMedia().within(history, ANYTHING)
    assert opened(shown(sent)[1].data).size == (2_000, 1_000)
    assert shown(history)[1] == large


async def test_two_processes_send_the_same_bytes() -> None:
    history = conversation(png(2_600, 40), png())
    first, second = [await RequestMedia().within(history, ANYTHING) for _ in range(2)]
    assert shown(first) == shown(second)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda: bomb(60_000, 60_000), "million pixels"),
        (lambda: picture(4_000, 4_000)[:400], "decoded"),
        (lambda: b"\x89PNG\r\n\x1a\n", "not a valid image/png"),
    ],
)
async def test_an_image_that_would_be_refused_is_named_instead(
    made: Callable[[], bytes], why: str
) -> None:
    part = MediaPart("image/png", inlined(made()), "b.png")
    for history in (conversation(part), conversation(png(), part)):
        sent = await RequestMedia().within(history, ANYTHING)
        assert "[Attachment left out: b.png: " in texts(sent)
        assert why in texts(sent)


async def test_what_a_model_does_not_take_is_named_instead() -> None:
    pdf = MediaPart("application/pdf", inlined(b"%PDF-1.7\n", "application/pdf"), "p.pdf")
    history = conversation(png(), pdf)
    blind = media_limits.limits_for("openai", frozenset({"text"}))
    sent = await RequestMedia().within(history, blind)
    assert shown(sent) == []
    assert texts(sent).count("this model takes no input of the kind") == 2
    reads = media_limits.limits_for("openai", frozenset({"text", "image", "pdf"}))
    assert shown(await RequestMedia().within(history, reads)) == shown(history)


async def test_the_oldest_are_named_when_there_are_too_many_and_stay_so() -> None:
    few = MediaLimits(image=ImageBounds(), parts_max=4, chars_max=1_000_000)
    parts = [png(10 + number) for number in range(9)]
    media = RequestMedia()
    left_out = 0
    for count in range(1, len(parts) + 1):
        sent = await media.within(conversation(*parts[:count]), few)
        kept = shown(sent)
        assert 0 < len(kept) <= 4
        assert kept == parts[count - len(kept) : count]
        assert count - len(kept) >= left_out
        left_out = count - len(kept)
        assert texts(sent).count("there are newer ones") == left_out
    assert left_out > 0


def encode_closed(sent: History) -> bytes:
    closed, _ = sent.kept.extend(
        "key", sent.runs, lambda index: [{"run": repr(sent.runs[index])}], open_count=0
    )
    return b"".join(closed)


async def test_bytes_of_earlier_requests_are_forgotten_when_more_is_left_out() -> None:
    few = MediaLimits(image=ImageBounds(), parts_max=2, chars_max=1_000_000)
    history = conversation(png(10), png(11))
    media = RequestMedia()
    sent = await media.within(history, few)
    encoded = encode_closed(sent)
    longer = conversation(png(10), png(11), png(12))
    grown = History(longer.runs, history.kept, media=history.media)
    again = await media.within(grown, few)
    assert b"newer ones" not in encoded
    assert b"newer ones" in encode_closed(again)


async def test_hostile_data_never_stops_a_request() -> None:
    hostile = [
        MediaPart("image/png", "data:", None),
        MediaPart("image/png", "data:image/png;base64,%%%", None),
        MediaPart("", "file:///etc/passwd", None),
        MediaPart("image/png", "https://example.org/a.png", None),
        MediaPart("text/plain", "data:text/plain,hello", "t.txt"),
        MediaPart("image/svg+xml", "data:image/svg+xml,<svg/>", None),
    ]
    history = conversation(*hostile)
    assert shown(await RequestMedia().within(history, ANYTHING)) == hostile


async def test_only_so_much_is_remembered() -> None:
    media = RequestMedia(chars_max=1)
    history = conversation(png(10), png(11))
    assert shown(await media.within(history, ANYTHING)) == shown(history)
    assert shown(await media.within(history, ANYTHING)) == shown(history)
