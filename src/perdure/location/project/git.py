"""Git calls of this program: they run nothing that a repository configures, and see no secrets.

Programs that git can be told to start are off on every command line. The configuration of a
repository, and what it includes, is not read at all: a call works on a scratch git directory
(location.project.scratch_repository), or outside of any repository.
"""

import os
import stat
from collections.abc import Mapping
from typing import Final

from perdure.core import limits
from perdure.core.shell import environment as shell_environment
from perdure.lazy_pattern import lazy_pattern

_ALWAYS: Final = (
    *("git", "--no-pager", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "core.pager=cat", "-c", "core.editor=false", "-c", "core.alternateRefsCommand=false"),
    *("-c", "core.gitProxy=", "-c", "diff.external=", "-c", "gpg.program=false"),
    *("-c", "submodule.recurse=false"),
)
_WITHOUT_NETWORK: Final = (
    *("-c", "core.sshCommand=false", "-c", "credential.helper=", "-c", "core.askPass="),
    *("-c", "protocol.allow=never"),
)
_COMMIT: Final = lazy_pattern(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF: Final = lazy_pattern(r"refs(?:/(?!\.)[^/\x00-\x20\x7f~^:?*\[\\]+)+")
_OF_WORK_TREE: Final = ("refs/bisect/", "refs/worktree/", "refs/rewritten/")
_NAMES_MAX: Final = 5


def local_command(*arguments: str) -> tuple[str, ...]:
    """The command line of a call that needs no network."""
    return (*_ALWAYS, *_WITHOUT_NETWORK, *arguments)


def network_command(*arguments: str) -> tuple[str, ...]:
    """The command line of a call that asks a server, with what the user configured for that."""
    return (*_ALWAYS, *arguments)


def make_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of a call: it must use its working directory, and never prompt."""
    visible = shell_environment.without_secrets(variables)
    kept = {name: value for name, value in visible.items() if not name.startswith("GIT_")}
    return {
        **kept,
        # A downloaded repository must not make git contact a server.
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def read_head(git_dir: str, common_dir: str) -> str | None:
    """The commit that is checked out; None before the first, and if its refs are not files.

    `common_dir` is the git directory that work trees share.
    """
    return _follow(git_dir, common_dir, "HEAD")


def read_ref(common_dir: str, name: str) -> str | None:
    """The commit of a ref such as `refs/heads/main`; None if there is none."""
    return _follow(common_dir, common_dir, name) if _REF.fullmatch(name) else None


def read_branch(git_dir: str) -> str | None:
    """The branch that is checked out; None if a commit is checked out without one."""
    return _branch_named(_read(os.path.join(git_dir, "HEAD")), "refs/heads/")


def read_default_branch(common_dir: str) -> str | None:
    """The branch that the remote `origin` names as its default, if that is known."""
    path = os.path.join(common_dir, "refs/remotes/origin/HEAD")
    return _branch_named(_read(path), "refs/remotes/origin/")


def _branch_named(content: str, prefix: str) -> str | None:
    name = content.removeprefix("ref:").strip()
    if not content.startswith("ref:") or not _REF.fullmatch(name):
        return None
    return name.removeprefix(prefix) if name.startswith(prefix) else None


def _follow(git_dir: str, common_dir: str, name: str) -> str | None:
    for _ in range(_NAMES_MAX):
        own = name == "HEAD" or name.startswith(_OF_WORK_TREE)
        content = _read(os.path.join(git_dir if own else common_dir, name)).strip()
        if _COMMIT.fullmatch(content):
            return content
        if not content.startswith("ref:"):
            return _find_packed(common_dir, name)
        name = content.removeprefix("ref:").strip()
        if not _REF.fullmatch(name):
            return None
    return None


def _find_packed(common_dir: str, name: str) -> str | None:
    for line in _read(os.path.join(common_dir, "packed-refs"), _PACKED_BYTES_MAX).splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name and _COMMIT.fullmatch(commit):
            return commit
    return None


_PACKED_BYTES_MAX: Final = 64 * 1024 * 1024


def _read(path: str, bytes_max: int = limits.GIT_FILE_BYTES_MAX) -> str:
    """The beginning of a file; empty if there is none, or something else than a file."""
    try:
        # A pipe must not be waited for.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return ""
        return opened.read(bytes_max).decode(errors="replace")
