"""Instructions: the AGENTS.md files that apply at a Location, as one ordered Context Source.

The user's own file comes first, then the project's from the Location up to its root, then those
next to files that the Session has read. A project's file must be inside the project by its real
path: a link could otherwise show any file of this machine to a model. core.context.system_context
compares and renders; store.tables.instruction_table keeps what a Session has discovered. A file
whose reading the rules deny to the turn's agent is left out.

Invariant: a file that cannot be looked at makes the whole source unavailable; only one that is seen
to be absent is. A file that is not text, or too large, is left out and logged, since waiting would
not help.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from perdure.core import limits
from perdure.core.approval import rules as permission
from perdure.core.context import system_context
from perdure.core.context.system_context import UNAVAILABLE, ContextSource, Observation
from perdure.core.files.paths import is_within
from perdure.host.environment import Environment
from perdure.host.files import cached_files
from perdure.host.files.cached_files import CachedFiles, FileTooLargeError
from perdure.location.context.registry import Subject
from perdure.location.project import parent_directories
from perdure.schema.approval.permission import Effect, SessionRules
from perdure.schema.codec import Record
from perdure.schema.settings.agent import AgentInfo

logger = logging.getLogger(__name__)

FILE_NAME: Final = "AGENTS.md"


Reading = Callable[[AgentInfo | None, tuple[str, ...], SessionRules], Callable[[str], Effect]]
"""For the agent of a turn, those that called it and the rules of the Session: what rules say to
reading a canonical path."""


def allow_reading(
    agent: AgentInfo | None, above: tuple[str, ...], session: SessionRules
) -> Callable[[str], Effect]:
    return permission.allow_all


class InstructionFile(Record, frozen=True):
    path: str
    content: str


InstructionFiles = tuple[InstructionFile, ...]


def render_files(files: InstructionFiles) -> str:
    return "\n\n".join(f"Instructions from {file.path}:\n{file.content}" for file in files)


INSTRUCTIONS: ContextSource[InstructionFiles] = ContextSource(
    key="core/instructions",
    type=InstructionFiles,
    baseline=render_files,
    update=lambda previous, current: (
        "The instruction files have changed. These replace all of those given before:\n\n"
        + render_files(current)
    ),
    removed=lambda previous: (
        "There are no instruction files any more. Those given before no longer apply."
    ),
)


class InstructionTexts:
    """Instruction files by path, read again only when they changed."""

    def __init__(self) -> None:
        self._files = CachedFiles(self._load)
        self._reported: set[tuple[str, str]] = set()

    def get(self, path: str) -> str | None:
        """The text; None when the file does not exist or is left out. May raise OSError."""
        return self._files.get(path)

    def has_read(self, path: str) -> bool:
        """Whether the path was a file when it was last looked at."""
        return self._files.has_read(path)

    def may_show(self, path: str, effect: Effect, *, is_meant: bool) -> bool:
        """Whether rules let a file be shown. No person can be asked while context is observed.

        `is_meant`: the user or the convention names this very file as instructions, so that only a
        denial holds. Raises OSError if the file cannot be looked at: where its link leads, and so
        what rules say, is not known then.
        """
        shown = effect == "allow" or (effect == "ask" and is_meant)
        if not shown and cached_files.exists(path):
            self.leave_out(path, f"the rules say {effect} to reading it")
        return shown

    def leave_out(self, path: str, reason: str) -> None:
        """Log once that a file is not used."""
        if (path, reason) not in self._reported:
            self._reported.add((path, reason))
            logger.warning("instructions: %s is left out: %s", path, reason)

    def _load(self, path: str) -> str | None:
        try:
            data = cached_files.read(path, bytes_max=limits.INSTRUCTION_FILE_BYTES_MAX)
        except FileTooLargeError:
            self.leave_out(path, f"it is larger than {limits.INSTRUCTION_FILE_BYTES_MAX} bytes")
            return None
        try:
            text = None if data is None else data.decode("utf-8-sig")
        except UnicodeDecodeError:
            self.leave_out(path, "it is not UTF-8 text")
            return None
        if text is not None and "\0" in text:
            self.leave_out(path, "it is not text")
            return None
        return text


class Instructions:
    """The instruction files of one Location. Unchanged ones are not read again."""

    def __init__(
        self,
        directory: str,
        *,
        root: str,
        environment: Environment,
        reading: Reading = allow_reading,
    ) -> None:
        self._directory = directory
        self._root = root
        self._environment = environment
        self._reading = reading
        self._texts = InstructionTexts()

    async def observe(self, subject: Subject) -> Observation:
        """Observe the files; empty when there are none."""
        try:
            files = tuple(self._existing(subject))
        except OSError as error:
            logger.warning("instructions: %s", error)
            return (system_context.make(INSTRUCTIONS, UNAVAILABLE),)
        return (system_context.make(INSTRUCTIONS, files),) if files else ()

    def find_for_file(self, path: str) -> tuple[str, ...]:
        """The instruction files between the Location and a file that was read, the nearest last.

        Files in the Location's own directory and above it apply anyway.
        """
        location = os.path.realpath(self._directory)
        folder = os.path.dirname(os.path.realpath(path))
        if self._disabled or not is_within(folder, location):
            return ()
        try:
            below = parent_directories.list_downwards(folder, location)[1:]
        except OSError as error:
            logger.warning("instructions: %s", error)
            return ()
        candidates = (os.path.join(directory, FILE_NAME) for directory in below)
        return tuple(filter(_may_exist, candidates))

    @property
    def _disabled(self) -> bool:
        return parent_directories.is_disabled(
            self._environment.variables.get(parent_directories.DISABLE)
        )

    def _existing(self, subject: Subject) -> Iterator[InstructionFile]:
        seen: set[str] = set()
        effect = self._reading(subject.agent, subject.above, subject.rules)
        for path in self._candidates(subject.discovered):
            if path in seen:
                continue
            seen.add(path)
            # By its real path: a link of this name can lead to any file of the project.
            if not self._texts.may_show(
                path, effect(path), is_meant=os.path.basename(path) == FILE_NAME
            ):
                continue
            content = self._texts.get(path)
            if content is not None:
                yield InstructionFile(path=path, content=content)

    def _candidates(self, discovered: Iterable[str]) -> Iterator[str]:
        """Canonical paths, in the order in which they are rendered."""
        users = os.path.join(self._environment.config_dir, FILE_NAME)
        if cached_files.exists(users):
            yield cached_files.real_path(users)
        if self._disabled:
            return
        location = cached_files.real_path(self._directory)
        root = location if self._root == self._directory else cached_files.real_path(self._root)
        if not is_within(location, root):
            return
        for path in (
            os.path.join(directory, FILE_NAME)
            for directory in parent_directories.list_upwards(location, root)
        ):
            # These directories are canonical, so only the file itself can be a link.
            if os.path.islink(path):
                yield from self._follow_link(path, root)
            else:
                yield path
        for path in discovered:
            yield from self._follow_link(path, root)

    def _follow_link(self, path: str, root: str) -> Iterator[str]:
        real = os.path.realpath(path)
        if is_within(real, parent_directories.link_bounds(os.path.dirname(path), root)):
            yield real
        elif _may_exist(real):
            self._texts.leave_out(path, "it is a link that leads out of the project")


def _may_exist(path: str) -> bool:
    """Whether a path exists or cannot be looked at."""
    try:
        return cached_files.exists(path)
    except OSError:
        return True
