"""Facts about models: those that come with the program, and a copy on disk that is kept up to date.

What lies on disk is what counts, so nobody ever waits for a server. Looking at the facts starts a
refresh beside everything else, at most once an hour, if this process may fetch at all. One process
fetches for all: the others find a young copy under the lock. Whatever fails is reported, and what
was there stays. Nothing is read before somebody asks for a model.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from urllib.parse import urlsplit

from perdure.core import limits
from perdure.core.models import facts_archive
from perdure.core.models.facts_archive import ModelArchive, ModelArchiveError
from perdure.core.models.known_providers import KnownProviders
from perdure.host.files import atomic
from perdure.net.transport import HttpRequest, HttpTransport, TransportError
from perdure.ports import Clock
from perdure.version import PACKAGE_FOLDER
from perdure.ports.tasks import StartTask

logger = logging.getLogger(__name__)


class FetchError(Exception):
    """The facts could not be fetched. The message says why, to follow the name of the source."""


class ModelFactsSource:
    """Where facts are published, and how the copy at `path` is brought up to date."""

    def __init__(
        self,
        url: str,
        path: str,
        *,
        transport: HttpTransport,
        clock: Clock,
        seconds_max: float = limits.MODELS_FETCH_SECONDS_MAX,
    ) -> None:
        self._url = url.rstrip("/") + "/api.json"
        self._path = path
        self._transport = transport
        self._clock = clock
        self._seconds_max = seconds_max

    @property
    def name(self) -> str:
        """Only the host: the rest of an address may hold a key."""
        return urlsplit(self._url).hostname or "an address without a host"

    async def refresh(self) -> None:
        """Make sure that the copy is young; raises FetchError."""
        try:
            async with asyncio.timeout(self._seconds_max):
                await self._refresh()
        except TimeoutError as error:
            raise FetchError(f"it took longer than {self._seconds_max:g} s") from error
        except (TransportError, ModelArchiveError, OSError) as error:
            raise FetchError(str(error)) from error

    async def _refresh(self) -> None:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        while True:
            with atomic.tried(f"{self._path}.lock") as mine:
                # Looked at under the lock: another process may just have fetched.
                if self._is_young():
                    return
                if mine:
                    await self._fetch()
                    return
            await self._clock.sleep(limits.MODELS_LOCK_SECONDS)

    async def _fetch(self) -> None:
        published = await self._published()
        packed = await asyncio.to_thread(facts_archive.pack, published)
        await asyncio.to_thread(_replace, self._path, packed)

    async def _published(self) -> bytes:
        headers = {"accept": "application/json", "accept-encoding": "gzip"}
        request = HttpRequest(url=self._url, headers=headers, body=(), method="GET")
        data = bytearray()
        async with self._transport.open(request) as response:
            if response.status != 200:
                raise FetchError(f"it answered with status {response.status}")
            async for chunk in response.chunks:
                data += chunk
                if len(data) > limits.MODELS_FETCH_BYTES_MAX:
                    most = limits.MODELS_FETCH_BYTES_MAX
                    raise FetchError(f"its answer is larger than {most} bytes")
        return bytes(data)

    def _is_young(self) -> bool:
        try:
            age = self._clock.now_millis() / 1000 - os.stat(self._path).st_mtime
        except OSError:
            return False
        return 0 <= age < limits.MODELS_TRUSTED_SECONDS


class ModelFactsCache:
    """The facts of the process. Belongs to the event loop, where its refreshes run."""

    def __init__(
        self,
        path: str,
        *,
        variables: Mapping[str, str],
        clock: Clock,
        source: ModelFactsSource | None = None,
        start: StartTask,
        refreshed: Callable[[], None] = lambda: None,
    ) -> None:
        """`path` is the copy on disk. Without a `source` nothing is ever fetched."""
        self._path = path
        self._variables = variables
        self._clock = clock
        self._source = source
        self._start = start
        self._refreshed = refreshed
        self._known: KnownProviders | None = None
        self._started_at: int | None = None
        self._running = False

    def known(self) -> KnownProviders:
        """What is known now; the very same object while nothing changes."""
        if self._known is None:
            self._known = self._read()
        if self._source is not None and self._is_due() and not self._running:
            self._running = True
            self._start(self._refresh(self._source))
        return self._known

    def _is_due(self) -> bool:
        now = self._clock.now_millis()
        since = None if self._started_at is None else now - self._started_at
        # A clock that was set back must not stop refreshes until it has caught up.
        due = since is None or not 0 <= since < limits.MODELS_REFRESH_SECONDS * 1000
        if due:
            self._started_at = now
        return due

    async def _refresh(self, source: ModelFactsSource) -> None:
        try:
            await source.refresh()
        except FetchError as error:
            logger.warning("facts about models of %s stay as they are: %s", source.name, error)
        else:
            self._known = self._read()
            self._refreshed()
        finally:
            self._running = False

    def _read(self) -> KnownProviders:
        known = bundled()
        archive = _copy(self._path) or known
        return KnownProviders(archive, self._variables, bundled=known)


@cache
def bundled() -> ModelArchive:
    """The facts that come with the program."""
    path = os.path.join(PACKAGE_FOLDER, "data", "models.json.gz")
    with open(path, "rb") as file:
        return ModelArchive(file.read())


def _copy(path: str) -> ModelArchive | None:
    """The copy on disk; one that cannot be used is removed, for the next refresh to replace."""
    try:
        with open(path, "rb") as file:
            return ModelArchive(file.read(limits.MODELS_FETCH_BYTES_MAX))
    except FileNotFoundError:
        return None
    except OSError as error:
        logger.warning("facts about models in %s cannot be read: %s", path, error.strerror)
        return None
    except ModelArchiveError as error:
        logger.warning("facts about models in %s are removed: %s", path, error)
        with suppress(OSError):
            os.unlink(path)
        return None


def _replace(path: str, data: bytes) -> None:
    """In one step, and only under the lock: nobody else writes the name beside it."""
    fresh = f"{path}.new"
    with open(fresh, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)
