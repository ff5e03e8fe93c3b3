"""Skills from the network: an index with the files of each skill, mirrored on disk.

Callers get the copy on disk and never wait for a server. Using a source starts a refresh in the
background, at most one at a time and one in ten minutes. A skill is installed whole or not at all;
failures are logged, and the copy on disk stays. core.skills.index reads an index,
location.skills.cache installs a version.
"""

import asyncio
import logging
from typing import Final
from urllib.parse import urlsplit

from perdure.core import limits
from perdure.core.skills import index as skill_index
from perdure.core.skills.index import IndexedSkill, SkillIndexError
from perdure.location.skills.cache import SkillCache
from perdure.location.skills.files import SkillFiles
from perdure.net.transport import HttpRequest, HttpTransport, TransportError
from perdure.ports import Clock, IdSource
from perdure.ports.tasks import StartTask
from perdure.schema.settings.skill import SkillInfo

logger = logging.getLogger(__name__)


_TRANSIENT: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class DownloadError(Exception):
    """A file could not be fetched. The message is logged after the name of the source."""


class _TransientError(DownloadError):
    """A retry may succeed."""


class SkillDownloads:
    """All sources of the process; their copies are below `root`."""

    def __init__(
        self, root: str, *, transport: HttpTransport, clock: Clock, ids: IdSource, start: StartTask
    ) -> None:
        self._root = root
        self._transport = transport
        self._clock = clock
        self._ids = ids
        self._start = start
        self._sources: dict[str, DownloadedSkills] = {}

    def source(self, url: str) -> "DownloadedSkills":
        """The skills of a URL, shared by all Locations. Raises SkillIndexError."""
        base = skill_index.base_url(url)
        known = self._sources.get(base)
        if known is None:
            refresh = _Refresh(
                base,
                SkillCache(self._root, base, clock=self._clock, ids=self._ids),
                transport=self._transport,
                clock=self._clock,
            )
            known = DownloadedSkills(refresh, clock=self._clock, start=self._start)
            known = self._sources.setdefault(base, known)
        return known


class DownloadedSkills:
    """The skills of one source. Used only on the event loop, where its refreshes run."""

    def __init__(self, refresh: "_Refresh", *, clock: Clock, start: StartTask) -> None:
        self._refresh = refresh
        self._clock = clock
        self._start = start
        self._files = SkillFiles(refresh.directory, clock=clock, name_of=_name_of)
        self._started_at: int | None = None
        self._running = False

    @property
    def is_known(self) -> bool:
        return self._files.is_known

    def list(self) -> tuple[SkillInfo, ...]:
        """The skills on disk. Starts a refresh when one is due."""
        now = self._clock.now_millis()
        since = None if self._started_at is None else now - self._started_at
        # A negative age means that the clock was set back; refresh then too.
        due = since is None or not 0 <= since < limits.SKILL_REFRESH_SECONDS * 1000
        if due and not self._running:
            self._started_at, self._running = now, True
            self._start(self._run_refresh())
        return self._files.list()

    async def _run_refresh(self) -> None:
        try:
            await self._refresh.run()
        finally:
            self._running = False


class _Refresh:
    """Brings the copy of one source up to date."""

    def __init__(
        self, base: str, cache: SkillCache, *, transport: HttpTransport, clock: Clock
    ) -> None:
        self._base = base
        self._cache = cache
        self._transport = transport
        self._clock = clock

    @property
    def directory(self) -> str:
        return self._cache.directory

    async def run(self) -> None:
        try:
            async with asyncio.timeout(limits.SKILL_REFRESH_SECONDS_MAX):
                await self._refresh_all()
        except TimeoutError:
            self._report(f"the refresh took longer than {limits.SKILL_REFRESH_SECONDS_MAX} s")
        except (DownloadError, SkillIndexError, OSError) as error:
            self._report(str(error))

    async def _refresh_all(self) -> None:
        url = skill_index.index_url(self._base)
        data = await self._fetch(url, "index.json", limits.SKILL_INDEX_BYTES_MAX)
        index = await asyncio.to_thread(skill_index.read, data)
        for problem in index.refused:
            self._report(problem)
        for offered in index.skills:
            try:
                await self._refresh_skill(offered)
            except (DownloadError, OSError) as error:
                self._report(f"skill {offered.name!r} was not refreshed: {error}")
        names = {offered.name for offered in index.skills}
        # A refused entry may be a mistake: keep the skills that were fetched before.
        if not index.refused:
            await asyncio.to_thread(self._cache.prune, names)

    async def _refresh_skill(self, offered: IndexedSkill) -> None:
        if await asyncio.to_thread(self._cache.has, offered):
            return
        stage = await asyncio.to_thread(self._cache.stage)
        try:
            contents: dict[str, str] = {}
            remaining = limits.SKILL_DOWNLOAD_BYTES_MAX
            for file in offered.files:
                url = skill_index.file_url(self._base, offered, file)
                bytes_max = min(remaining, limits.SKILL_DOWNLOAD_FILE_BYTES_MAX)
                data = await self._fetch(url, file, bytes_max)
                remaining -= len(data)
                contents[file] = await asyncio.to_thread(self._cache.write, stage, file, data)
            await asyncio.to_thread(self._cache.install, offered, stage, contents)
        finally:
            # After `install` the stage no longer exists.
            await asyncio.to_thread(self._cache.discard, stage)

    async def _fetch(self, url: str, name: str, bytes_max: int) -> bytes:
        for attempt in range(limits.SKILL_RETRIES_MAX):
            try:
                return await self._fetch_once(url, name, bytes_max)
            except _TransientError:
                await self._clock.sleep(limits.SKILL_RETRY_SECONDS * 2**attempt)
        return await self._fetch_once(url, name, bytes_max)

    async def _fetch_once(self, url: str, name: str, bytes_max: int) -> bytes:
        request = HttpRequest(url=url, headers={}, body=(), method="GET")
        try:
            async with (
                asyncio.timeout(limits.SKILL_REQUEST_SECONDS_MAX),
                self._transport.open(request) as response,
            ):
                if response.status in _TRANSIENT:
                    raise _TransientError(f"{name} was answered with status {response.status}")
                if response.status != 200:
                    raise DownloadError(f"{name} was answered with status {response.status}")
                data = bytearray()
                async for chunk in response.chunks:
                    data += chunk
                    if len(data) > bytes_max:
                        raise DownloadError(f"{name} is larger than {bytes_max} bytes")
                return bytes(data)
        except TransportError as error:
            raise _TransientError(f"{name} could not be fetched: {error}") from error
        except TimeoutError as error:
            seconds = limits.SKILL_REQUEST_SECONDS_MAX
            raise _TransientError(f"{name} was not received within {seconds} s") from error

    def _report(self, problem: str) -> None:
        # Only the host: the rest of a URL may contain a key.
        logger.warning("skills of %s: %s", urlsplit(self._base).hostname, problem)


def _name_of(relative: str) -> str | None:
    """The name of a skill in a copy: that of its directory, for one of two file names."""
    name, _, file = relative.partition("/")
    return name if file in skill_index.own_files(name) else None
