"""The project of a directory: its repository's identity and root, or the global project.

A repository is identified by its remote, so that every clone is the same project; without a remote
by an id kept in the repository; without that by its first commit. Git's files are read directly;
only the first commit needs a git process, when the identity is first needed. Nothing is written.

Invariant: an identity is cached exactly as long as the files it was read from are unchanged. While
they cannot be looked at, the last known answer stays.
"""

import asyncio
import hashlib
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from perdure.core import limits
from perdure.host.files import cached_files
from perdure.host.files.cached_files import FileTooLargeError, Signature
from perdure.lazy_pattern import lazy_pattern
from perdure.location.project import git, scratch_repository
from perdure.ports import ProcessRunner
from perdure.schema.ids import ProjectID
from perdure.schema.location import ProjectRef
from perdure.schema.value import Value

logger = logging.getLogger(__name__)

GLOBAL: Final = ProjectRef(id=ProjectID("global"), directory="/")
"""The project of everything outside a repository."""

_ID_FILE: Final = "opencode"
_ID: Final = lazy_pattern(r"[0-9A-Za-z_.-]{1,128}")
_COMMIT: Final = lazy_pattern(r"[0-9a-f]{40,64}")
_SCP_LIKE: Final = lazy_pattern(r"(?:[^@/]*@)?(\[[^\]]+\]|[^:/]+):(?!//|:)(.+)", re.DOTALL)
_URL: Final = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.-]*)://(?:[^@/]*@)?([^/]*)/(.+)", re.DOTALL)
_SECTION: Final = lazy_pattern(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_REMOTE_SCHEMES: Final = frozenset({"http", "https", "ssh", "git", "git+ssh", "ssh+git"})


class RepositoryUnreadableError(OSError):
    """A directory may be the root of a repository, but its `.git` cannot be looked at."""

    def __init__(self, worktree: str, error: OSError) -> None:
        super().__init__(error.errno, error.strerror, error.filename)
        self.worktree = worktree


class Repository(Value):
    """The directories of a repository: work tree, git directory, and shared git directory."""

    worktree: str
    git_dir: str
    common_dir: str

    @property
    def records(self) -> tuple[str, ...]:
        """The files that may contain the project's identity."""
        return os.path.join(self.common_dir, "config"), os.path.join(self.common_dir, _ID_FILE)

    @property
    def head(self) -> str:
        return os.path.join(self.git_dir, "HEAD")

    def branch(self) -> str:
        """The file of the branch that HEAD names; it appears with the first commit."""
        name = _read(self.head).removeprefix("ref:").strip()
        return os.path.join(self.common_dir, name) if name.startswith("refs/") else self.head


Signatures = tuple[Signature | None, ...]


class _Known(Value):
    """The identity of a repository, and the files it was read from."""

    id: ProjectID
    watched: tuple[str, ...]
    signatures: Signatures

    def current(self) -> bool:
        return _signatures(self.watched) == self.signatures


class _Found(Value):
    """The project of a directory, and every file whose change may change it."""

    project: ProjectRef
    watched: tuple[str, ...]
    signatures: Signatures

    def current(self) -> bool:
        return _signatures(self.watched) == self.signatures


class Projects:
    """Finds the project of a directory, with a cache. One for the process."""

    def __init__(self, processes: ProcessRunner, variables: Mapping[str, str]) -> None:
        self._processes = processes
        self._variables = git.make_environment(variables)
        self._found: dict[str, _Found] = {}
        self._known: dict[str, _Known] = {}
        self._asking: dict[str, asyncio.Lock] = {}
        self._unreadable: set[str] = set()

    async def resolve(self, directory: str) -> ProjectRef:
        """The project of an existing directory.

        While git's files cannot be looked at, the project is as it was last seen; one that was
        never seen has the identity of the global project.
        """
        found = self._found.get(directory)
        try:
            if found is None or not found.current():
                found = await self._find(directory)
                if len(self._found) >= limits.PROJECTS_REMEMBERED_MAX:
                    self._found.clear()
                self._found[directory] = found
        except OSError as error:
            if len(self._unreadable) >= limits.PROJECTS_REMEMBERED_MAX:
                self._unreadable.clear()
            self._unreadable.add(directory)
            logger.warning("the project of %s cannot be looked at: %s", directory, error)
            return _guess(directory, error) if found is None else found.project
        self._unreadable.discard(directory)
        return found.project

    def is_unreadable(self, directory: str) -> bool:
        """Whether git's files could not be looked at when the project was last resolved."""
        return directory in self._unreadable

    async def _find(self, directory: str) -> _Found:
        repository = find_repository(directory)
        worktree = None if repository is None else repository.worktree
        # A new repository nearer than the known one must be noticed too.
        passed = tuple(_dot_gits(directory, worktree))
        signatures = _signatures(passed)
        if repository is None:
            return _Found(GLOBAL, passed, signatures)
        try:
            known = await self._identify(repository)
        except OSError as error:
            raise RepositoryUnreadableError(repository.worktree, error) from error
        return _Found(
            ProjectRef(id=known.id, directory=repository.worktree),
            (*passed, *known.watched),
            (*signatures, *known.signatures),
        )

    async def _identify(self, repository: Repository) -> _Known:
        # Concurrent callers share one answer, so that git is started once.
        lock = self._asking.setdefault(repository.git_dir, asyncio.Lock())
        async with lock:
            known = self._known.get(repository.git_dir)
            if known is not None and known.current():
                return known
            known = self._known[repository.git_dir] = await self._read_identity(repository)
        self._asking.pop(repository.git_dir, None)
        return known

    async def _read_identity(self, repository: Repository) -> _Known:
        watched = (*repository.records, repository.head, repository.branch())
        # Before reading, so that a change in between is found the next time.
        signatures = _signatures(watched)
        recorded = read_recorded_id(repository)
        if recorded is not None:
            return _Known(recorded, watched[:2], signatures[:2])
        commit = await self._first_commit(repository)
        if commit is not None:
            return _Known(commit, watched[:3], signatures[:3])
        return _Known(GLOBAL.id, watched, signatures)

    async def _first_commit(self, repository: Repository) -> ProjectID | None:
        from tempfile import TemporaryDirectory

        head = git.read_head(repository.git_dir, repository.common_dir)
        if head is None:
            return None
        try:
            with TemporaryDirectory(prefix="perdure-git-") as scratch:
                variables = scratch_repository.make(
                    scratch, repository.common_dir, scratch_repository.settings_for(head)
                )
                result = await self._processes.run(
                    git.local_command("rev-list", "--max-parents=0", head, "--"),
                    directory=scratch,
                    environment={**self._variables, **variables},
                    timeout_seconds=limits.GIT_SECONDS_MAX,
                    output_bytes_max=limits.GIT_FILE_BYTES_MAX,
                    separate_errors=True,
                )
        except (FileNotFoundError, PermissionError):
            return None
        if result.exit_code != 0:
            return None
        roots = sorted(_COMMIT.findall(result.output.decode(errors="replace")))
        return ProjectID(roots[0]) if roots else None


def _guess(directory: str, error: OSError) -> ProjectRef:
    root = error.worktree if isinstance(error, RepositoryUnreadableError) else directory
    return ProjectRef(id=GLOBAL.id, directory=root)


def find_repository(directory: str) -> Repository | None:
    """The nearest repository that contains `directory`. Raises RepositoryUnreadableError."""
    found = _find_worktree(directory)
    if found is None:
        return None
    worktree, git_dir = found
    try:
        return Repository(worktree, git_dir, _common_dir(git_dir))
    except OSError as error:
        raise RepositoryUnreadableError(worktree, error) from error


def find_root(directory: str, *, last_known: str | None = None) -> str:
    """The root of a directory's project; `/` outside any repository.

    While a `.git` cannot be looked at, it is `last_known`, else the directory with that `.git`.
    """
    try:
        found = _find_worktree(directory)
    except RepositoryUnreadableError as error:
        logger.warning("%s may be a repository, which cannot be read: %s", error.worktree, error)
        return last_known or error.worktree
    return GLOBAL.directory if found is None else found[0]


def _find_worktree(directory: str) -> tuple[str, str] | None:
    """The nearest directory that is the work tree of a repository, and the git directory.

    Raises RepositoryUnreadableError.
    """
    worktree = directory
    while True:
        dot_git = os.path.join(worktree, ".git")
        try:
            git_dir = _git_dir(worktree, dot_git) if cached_files.exists(dot_git) else None
        except OSError as error:
            raise RepositoryUnreadableError(worktree, error) from error
        if git_dir is not None:
            return worktree, git_dir
        parent = os.path.dirname(worktree)
        if parent == worktree:
            return None
        worktree = parent


def read_recorded_id(repository: Repository) -> ProjectID | None:
    """The identity in git's files: that of the remote, or the id kept in the repository."""
    config = _read(os.path.join(repository.common_dir, "config"))
    remote = normalize_remote(origin_url(config) or "")
    if remote is not None:
        digest = hashlib.sha1(f"git-remote:{remote}".encode(), usedforsecurity=False)
        return ProjectID(digest.hexdigest())
    kept = _read(os.path.join(repository.common_dir, _ID_FILE)).strip()
    return ProjectID(kept) if _ID.fullmatch(kept) else None


def normalize_remote(url: str) -> str | None:
    """`host/path` of a remote URL, the same for every protocol; None for a local path."""
    found = _URL.fullmatch(url.strip())
    if found is not None:
        if found[1].lower() not in _REMOTE_SCHEMES:
            return None
        host, path = re.sub(r":\d*$", "", found[2]), found[3]
    else:
        found = _SCP_LIKE.fullmatch(url.strip())
        # One letter before the colon is a Windows drive, not a host.
        if found is None or len(found[1]) == 1:
            return None
        host, path = found[1], found[2]
    path = path.strip("/").removesuffix(".git").strip("/")
    return f"{host.lower()}/{path}" if host and path else None


def origin_url(config: str) -> str | None:
    """The first `url` of `[remote "origin"]` in the text of a git config file."""
    inside = False
    for line in config.splitlines():
        text = line.strip()
        section = _SECTION.match(text)
        if section is not None:
            inside = section[1].lower() == "remote" and section[2] == "origin"
            text = text[section.end() :].strip()
        key, equals, value = text.partition("=")
        if inside and equals and key.strip().lower() == "url":
            return _config_value(value)
    return None


def _config_value(value: str) -> str:
    """A config value without quotes and trailing comment."""
    bare = re.match(r'\s*((?:"(?:[^"\\]|\\.)*"|[^"#;])*)', value)
    text = bare[1] if bare else ""
    return text.strip().replace('"', "").replace("\\\\", "\\")


def _dot_gits(directory: str, worktree: str | None) -> Iterator[str]:
    """The paths below `worktree` where a nearer repository could appear.

    The `.git` of `worktree` is included if it is a file, which may be changed to name another
    repository; a directory changes all the time without that.
    """
    current = directory
    while current != worktree:
        yield os.path.join(current, ".git")
        parent = os.path.dirname(current)
        if parent == current:
            return
        current = parent
    dot_git = os.path.join(current, ".git")
    if not cached_files.is_directory(dot_git):
        yield dot_git


def _signatures(paths: Iterable[str]) -> Signatures:
    return tuple(map(cached_files.signature, paths))


def _git_dir(worktree: str, dot_git: str) -> str | None:
    """The git directory that `.git` is, or names if it is a file."""
    if cached_files.is_directory(dot_git):
        git_dir = dot_git
    else:
        prefix, _, target = _read(dot_git).partition(":")
        if prefix != "gitdir" or not target.strip():
            return None
        git_dir = os.path.normpath(os.path.join(worktree, target.strip()))
    return git_dir if cached_files.exists(os.path.join(git_dir, "HEAD")) else None


def _common_dir(git_dir: str) -> str:
    """The git directory that a linked work tree shares with its main repository."""
    target = _read(os.path.join(git_dir, "commondir")).strip()
    return os.path.normpath(os.path.join(git_dir, target)) if target else git_dir


def _read(path: str) -> str:
    """The text of a small file, empty for a missing one. Raises OSError."""
    try:
        data = cached_files.read(path, bytes_max=limits.GIT_FILE_BYTES_MAX)
    except FileTooLargeError:
        return ""
    return (data or b"").decode(errors="replace")
