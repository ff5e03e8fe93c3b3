"""Facts about models: those bundled with the program, and a refreshed copy on disk.

Callers get the copy on disk and never wait for a server. Using the facts starts a refresh in the
background, at most once an hour, if this process may fetch at all. One process fetches for all:
the others find a young copy once they hold the lock. Failures are logged, and the copy stays.
Nothing is read before a model is first needed.
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
from perdure.ports.tasks import StartTask
from perdure.version import PACKAGE_FOLDER

logger = logging.getLogger(__name__)


class FetchError(Exception):
    """The facts could not be fetched. The message is logged after the name of the source."""


class ModelFactsSource:
    """Fetches published facts into the copy at `path`."""

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
        """Only the host: the rest of a URL may contain a key."""
        return urlsplit(self._url).hostname or "a URL without a host"

    async def refresh(self) -> None:
        """Fetch the facts unless the copy is young. Raises FetchError."""
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
            with atomic.try_lock(f"{self._path}.lock") as locked:
                # Checked again: another process may just have fetched.
                if self._is_young():
                    return
                if locked:
                    await self._fetch()
                    return
            await self._clock.sleep(limits.MODELS_LOCK_SECONDS)

    async def _fetch(self) -> None:
        published = await self._download()
        packed = await asyncio.to_thread(facts_archive.pack, published)
        await asyncio.to_thread(_replace, self._path, packed)

    async def _download(self) -> bytes:
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
            # Both in whole milliseconds: a copy written in this one must not be from the future.
            written = os.stat(self._path).st_mtime_ns // 1_000_000
        except OSError:
            return False
        return 0 <= self._clock.now_millis() - written < limits.MODELS_TRUSTED_SECONDS * 1000


class ModelFactsCache:
    """The facts of the process. Used only on the event loop, where its refreshes run."""

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
        """The current facts; the same object while nothing changes."""
        if self._known is None:
            self._known = self._read()
        if self._source is not None and self._is_due() and not self._running:
            self._running = True
            self._start(self._refresh(self._source))
        return self._known

    def _is_due(self) -> bool:
        now = self._clock.now_millis()
        since = None if self._started_at is None else now - self._started_at
        # A negative age means that the clock was set back; refresh then too.
        due = since is None or not 0 <= since < limits.MODELS_REFRESH_SECONDS * 1000
        if due:
            self._started_at = now
        return due

    async def _refresh(self, source: ModelFactsSource) -> None:
        try:
            await source.refresh()
        except FetchError as error:
            logger.warning("model facts were not fetched from %s: %s", source.name, error)
        else:
            self._known = self._read()
            self._refreshed()
        finally:
            self._running = False

    def _read(self) -> KnownProviders:
        known = load_bundled()
        archive = _read_copy(self._path) or known
        return KnownProviders(archive, self._variables, bundled=known)


@cache
def load_bundled() -> ModelArchive:
    """The facts bundled with the program."""
    path = os.path.join(PACKAGE_FOLDER, "data", "models.json.gz")
    with open(path, "rb") as file:
        return ModelArchive(file.read())


def _read_copy(path: str) -> ModelArchive | None:
    """The copy on disk. One that cannot be used is removed, and the next refresh replaces it."""
    try:
        with open(path, "rb") as file:
            return ModelArchive(file.read(limits.MODELS_FETCH_BYTES_MAX))
    except FileNotFoundError:
        return None
    except OSError as error:
        logger.warning("model facts in %s cannot be read: %s", path, error.strerror)
        return None
    except ModelArchiveError as error:
        logger.warning("model facts in %s are damaged and removed: %s", path, error)
        with suppress(OSError):
            os.unlink(path)
        return None


def _replace(path: str, data: bytes) -> None:
    """Replace the file atomically. Needs the lock: all processes use the same temporary name."""
    temporary = f"{path}.new"
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
