"""The place of a directory: what trust and saved approvals are bound to.

In a repository it is the shared git directory, so that work trees of one repository have one place;
elsewhere it is the directory itself. A place is a real path together with the file that is there
(filesystem and inode): a moved, copied or replaced directory is another place. What a repository
says about itself (its remote, an id file, its first commit) does not count.

Invariant: a directory that names the git directory of another repository, by a link, a `.git` file
or a `commondir` file that this repository does not confirm, is a place of its own.
"""

import hashlib
import os
import stat
from typing import Final

from perdure.core import limits
from perdure.host.files import cached_files
from perdure.location.project import project
from perdure.location.project.project import Repository
from perdure.schema.value import Value

_WORKTREES: Final = "worktrees"


class Place(Value):
    path: bytes
    """The real path; bytes, because a file name need not be text."""
    filesystem: int
    inode: int
    root: str
    """The directory that relative paths at this place begin at."""

    @property
    def key(self) -> str:
        """The name of the place in stored grants and approvals."""
        named = b"%d:%d:%s" % (self.filesystem, self.inode, self.path)
        return hashlib.sha256(named).hexdigest()

    @property
    def display_path(self) -> str:
        return self.root.encode(errors="surrogateescape").decode(errors="replace")


def find_place(directory: str) -> Place:
    """The place of an existing directory. Raises OSError."""
    real = os.path.realpath(directory)
    repository = project.find_repository(real)
    if repository is None:
        return _place(real, real)
    own = _confirmed_git_directory(repository)
    return _place(own or repository.worktree, repository.worktree)


def _place(path: str, root: str) -> Place:
    found = os.stat(path)
    # The number of a device may change with each start of the machine, this one does not.
    filesystem = os.statvfs(path).f_fsid or found.st_dev
    return Place(os.fsencode(path), filesystem, found.st_ino, root)


def _confirmed_git_directory(repository: Repository) -> str | None:
    """The shared git directory, if it is in the work tree or names the work tree as its own."""
    dot_git = os.path.join(repository.worktree, ".git")
    mode = os.lstat(dot_git).st_mode
    if stat.S_ISDIR(mode):
        return dot_git if repository.common_dir == repository.git_dir else None
    if not stat.S_ISREG(mode):
        return None
    git_dir, common = map(os.path.realpath, (repository.git_dir, repository.common_dir))
    if os.path.dirname(git_dir) != os.path.join(common, _WORKTREES):
        return None
    named = cached_files.read(os.path.join(git_dir, "gitdir"), bytes_max=limits.GIT_FILE_BYTES_MAX)
    back = os.path.join(git_dir, os.fsdecode((named or b"").strip()))
    return common if os.path.realpath(back) == dot_git else None
