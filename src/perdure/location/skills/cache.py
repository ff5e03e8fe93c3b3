"""Downloaded skills on disk: `<source>/<name>` is a link to one complete version of a skill.

A version is written to a staging directory, moved into place, and then the link is replaced
atomically: a reader sees the old version or the new one. Several processes may do this at once.
All functions block on the disk and must run on a thread.

Invariant: the target of a link is never written to.
"""

import hashlib
import os
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress

from perdure.core import limits
from perdure.core.skills.index import IndexedSkill
from perdure.host.files import atomic
from perdure.ports import Clock, IdSource
from perdure.schema import codec


class SkillCache:
    """The downloaded skills of one source, below `root`, the directory of all sources."""

    def __init__(self, root: str, base: str, *, clock: Clock, ids: IdSource) -> None:
        source = _digest(base.encode())
        self.directory = os.path.join(root, source)
        self._versions = os.path.join(root, ".versions", source)
        self._staging = os.path.join(root, ".staging", source)
        self._clock = clock
        self._ids = ids

    def has(self, offered: IndexedSkill) -> bool:
        """Whether this version is installed. A skill without a version never is."""
        link = os.path.join(self.directory, offered.name)
        version = None if offered.version is None else _version(offered, offered.version)
        return version is not None and _target(link) == version and os.path.isdir(link)

    def stage(self) -> str:
        """Create a staging directory for a version."""
        path = os.path.join(self._staging, self._ids.named("skl"))
        os.makedirs(path)
        return path

    def write(self, stage: str, file: str, data: bytes) -> str:
        """Write one file of a version; returns the digest of its content."""
        path = os.path.join(stage, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as target:
            target.write(data)
            target.flush()
            os.fsync(target.fileno())
        return _digest(data)

    def install(self, offered: IndexedSkill, stage: str, contents: Mapping[str, str]) -> None:
        """Install a complete version. `contents` maps its files to their digests."""
        version = _version(offered, offered.version or sorted(contents.items()))
        link = os.path.join(self.directory, offered.name)
        if _target(link) == version and os.path.isdir(link):
            self.discard(stage)
            return
        target = os.path.join(self._versions, version)
        os.makedirs(self._versions, exist_ok=True)
        os.makedirs(self.directory, exist_ok=True)
        if not atomic.put_in_place(stage, target):
            # The same version exists already, perhaps from another process.
            self.discard(stage)
        new_link = os.path.join(self._staging, self._ids.named("skl"))
        os.symlink(os.path.relpath(target, self.directory), new_link)
        os.replace(new_link, link)

    def discard(self, stage: str) -> None:
        shutil.rmtree(stage, ignore_errors=True)

    def prune(self, names: Collection[str]) -> None:
        """Remove skills that are no longer offered, and versions without a link."""
        for name in _children(self.directory):
            if name not in names:
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.directory, name))
        linked = {_target(os.path.join(self.directory, name)) for name in names}
        self._sweep(self._versions, linked)
        self._sweep(self._staging, ())

    def _sweep(self, directory: str, kept: Collection[str | None]) -> None:
        """Remove unused entries. A young one may be about to be used by another process."""
        oldest = self._clock.now_millis() / 1000 - limits.SKILL_LEFTOVER_SECONDS
        for name in _children(directory):
            path = os.path.join(directory, name)
            with suppress(FileNotFoundError):
                if name in kept or os.lstat(path).st_mtime > oldest:
                    continue
                if os.path.islink(path):
                    os.unlink(path)
                else:
                    self.discard(path)


def _version(offered: IndexedSkill, version: object) -> str:
    return _digest(codec.encode([offered.name, offered.files, version]))


def _target(link: str) -> str | None:
    try:
        return os.path.basename(os.readlink(link))
    except OSError:
        return None


def _children(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]
