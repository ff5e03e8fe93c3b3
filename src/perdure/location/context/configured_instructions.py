"""Instructions named by the configuration: files, patterns of files, and pages of the web.

They are one Context Source, in the order in which the configuration names them. A project's
documents may only name files of the project, by their real path. Pages must be on the public
internet or on a host that the user allowed. A page is fetched again after a while; until then, and
when that fails, the earlier text is used.

Invariant: a page that was never fetched, or a file or directory that cannot be looked at, makes the
source unavailable. A named file that does not exist is left out.
"""

import asyncio
import glob
import logging
import os
from collections.abc import Callable, Iterator
from itertools import islice

from perdure.core import limits
from perdure.core.context import system_context
from perdure.core.context.system_context import UNAVAILABLE, ContextSource, Observation
from perdure.core.files.paths import is_within
from perdure.core.settings.settings import InstructionEntry
from perdure.host.environment import Environment
from perdure.host.files import cached_files
from perdure.location.context import file_pattern, instructions
from perdure.location.context.instructions import (
    InstructionFile,
    InstructionFiles,
    InstructionTexts,
    Reading,
)
from perdure.location.context.registry import Subject
from perdure.location.project import parent_directories
from perdure.ports import Clock, WebFetchError, WebPages, WebRequest
from perdure.schema.approval.permission import Effect
from perdure.schema.value import Value

logger = logging.getLogger(__name__)

CONFIGURED: ContextSource[InstructionFiles] = ContextSource(
    key="core/configured-instructions",
    type=InstructionFiles,
    baseline=instructions.render_files,
    update=lambda previous, current: (
        "The configured instructions have changed. These replace all of those given before:\n\n"
        + instructions.render_files(current)
    ),
    removed=lambda previous: (
        "There are no configured instructions any more. Those given before no longer apply."
    ),
)


class _Page(Value):
    text: str
    fetched_at: int


class _Found(Value):
    paths: tuple[str, ...]
    looked_at: int


class ConfiguredInstructions:
    """The configured instructions of one Location. Unchanged files are not read again."""

    def __init__(
        self,
        entries: tuple[InstructionEntry, ...],
        *,
        root: str,
        environment: Environment,
        pages: WebPages,
        allowed_hosts: tuple[str, ...],
        clock: Clock,
        reading: Reading = instructions.allow_reading,
    ) -> None:
        self._entries = entries
        self._root = root
        self._home = environment.home
        self._web = pages
        self._allowed_hosts = allowed_hosts
        self._clock = clock
        self._reading = reading
        self._texts = InstructionTexts()
        self._pages: dict[str, _Page] = {}
        self._found: dict[tuple[str, str], _Found] = {}

    async def observe(self, subject: Subject) -> Observation:
        """Observe the instructions; empty when none is configured or none exists."""
        effect = self._reading(subject.agent, subject.above, subject.rules)
        files: dict[str, InstructionFile] = {}
        try:
            for entry in self._entries:
                for file in await self._read(entry, effect):
                    files.setdefault(file.path, file)
        except (OSError, WebFetchError) as error:
            logger.warning("configured instructions: %s", error)
            return (system_context.make(CONFIGURED, UNAVAILABLE),)
        return (system_context.make(CONFIGURED, tuple(files.values())),) if files else ()

    async def _read(
        self, entry: InstructionEntry, effect: Callable[[str], Effect]
    ) -> list[InstructionFile]:
        if entry.text.startswith(("http://", "https://")):
            return [InstructionFile(path=entry.text, content=await self._page(entry.text))]
        paths = await self._matching(entry.directory, self._expanded(entry))
        return list(self._files(entry, paths, effect))

    def _files(
        self, entry: InstructionEntry, paths: tuple[str, ...], effect: Callable[[str], Effect]
    ) -> Iterator[InstructionFile]:
        own = parent_directories.link_bounds(entry.directory, self._root)
        for path in paths:
            real = cached_files.real_path(path)
            if entry.trust == "project" and not is_within(real, own):
                self._texts.leave_out(path, "it is not in the project")
                continue
            if not self._texts.may_show(real, effect(real), is_meant=entry.trust == "user"):
                continue
            content = self._texts.get(real)
            if content is not None:
                yield InstructionFile(path=real, content=content)

    def _expanded(self, entry: InstructionEntry) -> str:
        own_home = entry.text.startswith("~/")
        return os.path.join(self._home, entry.text[2:]) if own_home else entry.text

    async def _matching(self, directory: str, pattern: str) -> tuple[str, ...]:
        if "**" not in pattern:
            return self._matches(directory, pattern)
        # A whole tree is walked on a thread, and not at every boundary.
        now = self._clock.now_millis()
        found = self._found.get((directory, pattern))
        if found is None or _is_old(found.looked_at, now, limits.INSTRUCTION_WALK_SECONDS):
            paths = await asyncio.to_thread(self._matches, directory, pattern)
            found = self._found[directory, pattern] = _Found(paths, now)
        return found.paths

    def _matches(self, directory: str, pattern: str) -> tuple[str, ...]:
        found = file_pattern.find_paths(directory, pattern)
        if glob.has_magic(pattern) and not os.path.splitext(pattern)[1]:
            # Such a pattern may match directories; one with a suffix names files.
            found = filter(self._may_be_file, found)
        return tuple(sorted(islice(found, limits.INSTRUCTION_FILES_MAX)))

    def _may_be_file(self, path: str) -> bool:
        """A directory in the place of a known file hides that file."""
        return not cached_files.is_directory(path) or self._texts.has_read(path)

    async def _page(self, url: str) -> str:
        now = self._clock.now_millis()
        known = self._pages.get(url)
        seconds = limits.INSTRUCTION_PAGE_SECONDS
        if known is not None and not _is_old(known.fetched_at, now, seconds):
            return known.text
        try:
            text = await self._fetched(url)
        except WebFetchError as error:
            if known is None:
                raise WebFetchError(f"{url}: {error}") from error
            logger.warning("configured instructions: %s: %s; the earlier text is used", url, error)
            text = known.text
        self._pages[url] = _Page(text, now)
        return text

    async def _fetched(self, url: str) -> str:
        page = await self._web.fetch(
            WebRequest(
                url=url,
                accept="text/*",
                allowed_hosts=self._allowed_hosts,
                seconds_max=limits.INSTRUCTION_FETCH_SECONDS_MAX,
            )
        )
        if len(page.body) > limits.INSTRUCTION_FILE_BYTES_MAX:
            raise WebFetchError(f"larger than {limits.INSTRUCTION_FILE_BYTES_MAX} bytes")
        try:
            return page.body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise WebFetchError("not UTF-8 text") from error


def _is_old(since: int, now: int, seconds: int) -> bool:
    return not 0 <= now - since < seconds * 1000
