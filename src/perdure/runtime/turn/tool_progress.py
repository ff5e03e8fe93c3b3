"""Progress that a running tool call reports, recorded at most once for each interval.

A call may report as often as it likes. The first report is recorded at once, a later one when the
interval is over; of those in between only the latest. A report that is too long keeps its end.

Invariant: nothing is recorded after `close`, so the result is the last event of a call. `close`
never waits, so that an interrupt cannot lose a result.
"""

import asyncio
from collections.abc import Callable, Coroutine

from perdure.core import limits
from perdure.ports import Clock
from perdure.runtime.tasks import Background
from perdure.schema import codec
from perdure.schema.session.tool import TextContent
from perdure.tools.api.tool import Progress


class ToolProgress:
    def __init__(
        self,
        record: Callable[[Progress], Coroutine[None, None, None]],
        *,
        background: Background,
        clock: Clock,
    ) -> None:
        self._record = record
        self._background = background
        self._clock = clock
        self._latest: Progress | None = None
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def report(self, progress: Progress) -> None:
        """For ToolCallContext. Raises at once when it is not JSON."""
        if self._closed:
            return
        self._latest = bounded(progress)
        if self._task is None:
            self._task = self._background.launch(self._run(), name="tool progress")

    def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()

    async def last(self) -> None:
        """Close, and record the latest report before the call is settled as interrupted."""
        self.close()
        if self._latest is not None:
            await self._record(self._latest)

    async def _run(self) -> None:
        while (latest := self._latest) is not None:
            self._latest = None
            await self._record(latest)
            await self._clock.sleep(limits.TOOL_PROGRESS_SECONDS)
        self._task = None


def bounded(progress: Progress) -> Progress:
    """A report as it is recorded: whole, or the end of its text."""
    structured, content = codec.encode(progress.structured), codec.encode(progress.content)
    if len(structured) + len(content) <= limits.TOOL_PROGRESS_BYTES_MAX:
        return Progress(codec.decode_any(structured), progress.content)
    said = "".join(part.text for part in progress.content if isinstance(part, TextContent))
    end = said.encode()[-limits.TOOL_PROGRESS_BYTES_MAX // 2 :].decode(errors="ignore")
    return Progress({}, (TextContent(text=end),) if end else ())
