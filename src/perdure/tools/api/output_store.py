"""Managed Tool Output Files: the complete text behind a bounded Model Tool Output.

The files lie flat in one directory, have globally unique names and are kept for a few days. They
are a convenience; the bounded output in Session History is the durable record.

Invariant: a text that cannot be stored never fails the tool call. The preview then says that there
is no more, and a warning is logged.
"""

import logging
import posixpath
from typing import Final

from perdure.core.limits import TOOL_OUTPUT_FILE_BYTES_MAX, TOOL_OUTPUT_RETENTION_SECONDS
from perdure.core.request import tool_output
from perdure.core.request.tool_output import OutputLimits
from perdure.ports import Clock, Filesystem, IdSource
from perdure.schema.codec import JsonObject
from perdure.schema.session.tool import ToolContent
from perdure.schema.value import Value
from perdure.tools.api.registry import ToolSuccess

logger = logging.getLogger(__name__)

NAME_PREFIX: Final = "tool_"


class BoundedOutput(Value):
    structured: JsonObject
    content: tuple[ToolContent, ...]
    output_paths: tuple[str, ...]


class ToolOutputStore:
    def __init__(
        self, directory: str, *, filesystem: Filesystem, ids: IdSource, clock: Clock
    ) -> None:
        self._directory = directory
        self._filesystem = filesystem
        self._ids = ids
        self._clock = clock

    async def keep(self, text: str) -> str | None:
        """Store the complete `text` and give its path; None if it could not be stored."""
        path = f"{self._directory}/{self._ids.named('tool')}"
        try:
            await self._filesystem.make_directories(self._directory)
            await self._filesystem.create_exclusive(path, text.encode(), mode=0o600)
        except OSError as error:
            logger.warning("tool output not kept at %s: %s", path, error)
            return None
        return path

    async def holds(self, path: str) -> bool:
        """Whether there is still a file at this path."""
        (found,) = await self._filesystem.are_files([path])
        return found

    async def reserve(self) -> str:
        """A path that another component writes a managed file to; raises OSError."""
        await self._filesystem.make_directories(self._directory)
        return f"{self._directory}/{self._ids.named('tool')}"

    def spool(self) -> "Spool":
        """A file for a text that is too long to be held, made when something is written to it."""
        path = f"{self._directory}/{self._ids.named('tool')}"
        return Spool(path, filesystem=self._filesystem)

    async def sweep(self) -> int:
        """Remove the files that are past their retention; how many went."""
        try:
            entries = await self._filesystem.list(self._directory)
        except FileNotFoundError:
            return 0
        except OSError as error:
            logger.warning("tool output in %s not looked through: %s", self._directory, error)
            return 0
        oldest_ns = (self._clock.now_millis() - TOOL_OUTPUT_RETENTION_SECONDS * 1_000) * 1_000_000
        expired = [
            name
            for name, status in entries
            if name.startswith(NAME_PREFIX) and status.is_file and status.modified_ns < oldest_ns
        ]
        return sum([await self._discard(name) for name in expired])

    async def discard(self, path: str) -> None:
        """Remove a file before its time; a path that is not ours is left alone."""
        directory, name = posixpath.split(path)
        if directory == self._directory and name.startswith(NAME_PREFIX):
            await self._discard(name)

    async def _discard(self, name: str) -> bool:
        try:
            await self._filesystem.remove(f"{self._directory}/{name}")
        except FileNotFoundError:
            # Another process sweeps the same directory.
            return False
        except OSError as error:
            logger.warning("tool output %s not removed: %s", name, error)
            return False
        return True


class Spool:
    """One growing Managed Tool Output File. What cannot be kept is dropped, and logged once."""

    def __init__(self, path: str, *, filesystem: Filesystem) -> None:
        self._path = path
        self._filesystem = filesystem
        self._failed = False
        self.kept = 0
        """Bytes in the file."""

    @property
    def path(self) -> str | None:
        """Where the file is, once there is one."""
        return self._path if self.kept else None

    async def write(self, data: bytes) -> None:
        room = TOOL_OUTPUT_FILE_BYTES_MAX - self.kept
        if self._failed or room <= 0 or not data:
            return
        try:
            await self._add(data[:room])
        except OSError as error:
            self._failed = True
            logger.warning("tool output not kept at %s: %s", self._path, error)
            return
        self.kept += min(len(data), room)

    async def _add(self, data: bytes) -> None:
        if self.kept:
            await self._filesystem.append(self._path, data)
            return
        await self._filesystem.make_directories(posixpath.dirname(self._path))
        await self._filesystem.create_exclusive(self._path, data, mode=0o600)


async def bound(
    success: ToolSuccess, store: ToolOutputStore, limits: OutputLimits
) -> BoundedOutput:
    """What may go into Session History and before the model."""
    text = tool_output.measured_text(success.structured, success.content)
    if tool_output.fits(text, limits):
        return BoundedOutput(success.structured, success.content, success.output_paths)
    path = await store.keep(text)
    preview = tool_output.preview(text, limits, path=path)
    kept = () if path is None else (path,)
    return BoundedOutput(
        structured=success.structured,
        content=tool_output.with_preview(success.content, preview),
        output_paths=(*success.output_paths, *kept),
    )
