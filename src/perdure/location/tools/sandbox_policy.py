"""The sandbox policy of a Location: its places, as they are on disk now.

Commands may write to the Location, to the git directory of its repository and to a directory for
temporary files of its own. They may not change what git runs or obeys (hooks, config), nor the
configuration of agents, and do not see this program's data, the user's configuration, and places
where programs keep keys.

Invariant: a git directory outside the Location is writable only if git made the Location its work
tree. A `.git` file alone proves nothing, because it may come with an archive.
"""

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from msgspec import structs

from perdure.core.files.paths import is_within
from perdure.core.sandbox import policy
from perdure.core.sandbox.policy import Place, SandboxPolicy
from perdure.host.environment import Environment
from perdure.host.sandbox import private_directory
from perdure.location.project import project
from perdure.location.project.project import Repository
from perdure.location.tools.location_tools import ToolServices

_PROTECTED: Final = (".opencode", "opencode.json", "opencode.jsonc")
_GIT_PROTECTED: Final = ("config", "config.worktree", "modules", "commondir")
_GIT_OBEYED: Final = ("config", "config.worktree", "commondir")
_DATA_READABLE: Final = ("tool-output", "repos", "cache/skills", "plans")
_LISTS_MAX: Final = 8
_CONFIG_READABLE: Final = ("skills", "skill")


def read_policy(services: ToolServices) -> SandboxPolicy:
    """The policy of commands in this Location."""
    settings, environment = services.settings.sandbox, services.environment
    directory = os.path.realpath(services.directory)
    temporary = _make_temporary(environment.temp_dir, directory)
    places: list[Place] = []
    if temporary is not None:
        places.append(Place("write", temporary))
    if settings.mode == "workspace-write":
        places += _workspace(directory)
        places += [
            Place("write", os.path.realpath(_expand(path, environment.home)))
            for path in settings.writable
        ]
    places += _secrets(services)
    made = policy.make_policy(places, network=settings.network, temporary=temporary)
    return structs.replace(made, absent=tuple(_missing(places)), hosts=settings.hosts)


def _missing(places: Sequence[Place]) -> Iterator[str]:
    """The files of writable git directories that git would obey if a command made them."""
    git_dirs = (place.path for place in places if place.access == "keep")
    for path in (os.path.join(each, name) for each in git_dirs for name in _GIT_OBEYED):
        if not os.path.lexists(path):
            yield path


def _workspace(directory: str) -> Iterator[Place]:
    yield Place("write", directory)
    for name in _PROTECTED:
        yield from _existing("read", os.path.join(directory, name))
    try:
        repository = project.find_repository(directory)
    except OSError:
        repository = None
    if repository is None:
        return
    marker = os.path.join(repository.worktree, ".git")
    if os.path.isfile(marker):
        yield from _existing("read", marker)
    for git_dir in _writable_git_dirs(repository, directory):
        if any(os.path.islink(os.path.join(git_dir, name)) for name in ("hooks", *_GIT_PROTECTED)):
            # A link cannot be kept from being replaced.
            yield Place("read", git_dir)
            continue
        yield Place("keep", git_dir)
        yield Place("reserve", os.path.join(git_dir, "hooks"))
        for name in _GIT_PROTECTED:
            yield from _existing("read", os.path.join(git_dir, name))


def _writable_git_dirs(repository: Repository, directory: str) -> Iterator[str]:
    git_dir = os.path.realpath(repository.git_dir)
    common = os.path.realpath(repository.common_dir)
    own = os.path.join(os.path.realpath(repository.worktree), ".git")
    if git_dir == own and common == own:
        yield own
    elif is_within(git_dir, directory) and is_within(common, directory):
        yield from dict.fromkeys((common, git_dir))
    elif os.path.dirname(git_dir) == os.path.join(common, "worktrees"):
        with suppress(OSError, UnicodeError):
            with open(os.path.join(git_dir, "gitdir"), encoding="utf-8") as file:
                claimed = os.path.realpath(file.read(4096).strip())
            if claimed == os.path.realpath(own):
                yield from (common, git_dir)


def _secrets(services: ToolServices) -> Iterator[Place]:
    environment = services.environment
    for root, readable in (
        (environment.data_dir, _DATA_READABLE),
        (environment.config_dir, _CONFIG_READABLE),
    ):
        real = os.path.realpath(root)
        yield from _existing("hide", real)
        for name in readable:
            yield from _existing("read", os.path.join(real, name))
    for path in list_secrets(services):
        yield from _existing("hide", os.path.realpath(path))


def list_secrets(services: ToolServices) -> Iterator[str]:
    """Places where programs keep keys, and those that the user named; they may be missing."""
    home = services.environment.home
    yield from (os.path.join(home, name) for name in policy.SECRET_PATHS)
    yield from policy.SYSTEM_SECRETS
    yield from (_expand(path, home) for path in services.settings.sandbox.hidden)


def find_secrets(services: ToolServices) -> tuple[str, ...]:
    """The same places by their canonical paths."""
    return _real_paths(tuple(list_secrets(services)))


@lru_cache(maxsize=_LISTS_MAX)
def _real_paths(paths: tuple[str, ...]) -> tuple[str, ...]:
    # Links that are changed later cannot move a boundary.
    return tuple(dict.fromkeys(map(os.path.realpath, paths)))


def list_readable(environment: Environment) -> Iterator[str]:
    """Parts of this program's data and of the user's configuration that tools may read."""
    yield from (os.path.join(environment.data_dir, name) for name in _DATA_READABLE)
    yield from (os.path.join(environment.config_dir, name) for name in _CONFIG_READABLE)


def _existing(access: policy.Access, path: str) -> Iterator[Place]:
    # A link decides nothing: what it leads to has a place of its own.
    if os.path.lexists(path) and not os.path.islink(path):
        yield Place(access, path)


def _expand(path: str, home: str) -> str:
    return (
        os.path.normpath(os.path.join(home, path.removeprefix("~").lstrip("/")))
        if (path == "~" or path.startswith("~/"))
        else os.path.abspath(path)
    )


def _make_temporary(temp_dir: str, directory: str) -> str | None:
    """The directory for temporary files of the Location's commands; None if it cannot be made."""
    root = private_directory.shared_root(temp_dir)
    path = os.path.join(root, hashlib.sha256(directory.encode(errors="replace")).hexdigest()[:16])
    made = private_directory.make(root) and private_directory.make(path)
    return os.path.realpath(path) if made else None
