"""Progress: as often as a tool likes, recorded now and then, and never after the result."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from perdure.core import limits
from perdure.runtime.tasks import Background
from perdure.runtime.turn import tool_progress
from perdure.runtime.turn.tool_progress import ToolProgress
from perdure.schema import codec
from perdure.schema.session.tool import FileContent, TextContent
from perdure.testing import ManualClock
from perdure.tools.api.tool import Progress


def said(text: str) -> Progress:
    return Progress({}, (TextContent(text=text),))


class Record:
    def __init__(self, background: Background) -> None:
        self.clock = ManualClock()
        self.texts: list[str] = []
        self.recorded = asyncio.Event()
        self.progress = ToolProgress(self._record, background=background, clock=self.clock)

    async def _record(self, progress: Progress) -> None:
        (part,) = progress.content
        assert isinstance(part, TextContent)
        self.texts.append(part.text)
        self.recorded.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.texts) < count:
                self.recorded.clear()
                await self.recorded.wait()

    async def pause(self, count: int) -> None:
        """Until the interval after that many records is over."""
        async with asyncio.timeout(5):
            await self.clock.until_sleeps(count)
        self.clock.advance(limits.TOOL_PROGRESS_SECONDS)


@pytest.fixture
async def record() -> AsyncGenerator[Record]:
    async with Background() as background:
        yield Record(background)


async def test_the_first_word_is_recorded_at_once_and_then_only_the_latest(record: Record) -> None:
    for number in range(100):
        record.progress.report(said(f"{number}"))
    await record.until(1)
    assert record.texts == ["99"]
    for number in range(100, 200):
        record.progress.report(said(f"{number}"))
    assert record.texts == ["99"]
    await record.pause(1)
    await record.until(2)
    assert record.texts == ["99", "199"]
    assert record.clock.sleeps[0] == limits.TOOL_PROGRESS_SECONDS


async def test_after_the_end_nothing_is_recorded(record: Record) -> None:
    record.progress.report(said("working"))
    await record.until(1)
    record.progress.report(said("nearly done"))
    record.progress.close()
    record.progress.report(said("after the end"))
    await record.pause(1)
    await asyncio.sleep(0)
    assert record.texts == ["working"]


async def test_a_pause_is_followed_by_a_word_at_once(record: Record) -> None:
    record.progress.report(said("one"))
    await record.until(1)
    await record.pause(1)
    await asyncio.sleep(0)
    record.progress.report(said("two"))
    await record.until(2)
    assert record.texts == ["one", "two"]


async def test_what_is_not_json_is_told_to_the_tool_at_once(record: Record) -> None:
    with pytest.raises(TypeError):
        record.progress.report(Progress({"what": object()}, ()))
    record.progress.close()
    assert record.texts == []


def test_a_word_that_is_too_long_is_cut_to_its_end() -> None:
    long = "é" * limits.TOOL_PROGRESS_BYTES_MAX + "the end"
    cut = tool_progress.bounded(Progress({"rows": 3}, (TextContent(text=long),)))
    (part,) = cut.content
    assert isinstance(part, TextContent)
    assert part.text.endswith("é" + "the end")
    assert len(codec.encode(cut)) <= limits.TOOL_PROGRESS_BYTES_MAX
    huge = Progress({"rows": "x" * 10_000}, (FileContent(uri="data:x", mime="image/png"),))
    assert tool_progress.bounded(huge) == Progress({}, ())


def test_a_short_word_is_kept_as_it_is() -> None:
    short = Progress({"done": 3, "of": [1, 2]}, (TextContent(text="three"),))
    assert tool_progress.bounded(short) == short
