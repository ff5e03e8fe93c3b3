"""A scratch git directory: works on a repository's files and objects without its configuration.

What a repository configures (filters, hooks, fsmonitor, includes, external programs) is read from
its git directory. With another git directory git reads none of it, whatever new key a release of
git may obey. A few settings that decide how files are read are copied, if they have plain values.
"""

import os
import shutil
from contextlib import suppress
from typing import Final

from perdure.core import limits
from perdure.lazy_pattern import lazy_pattern

COPIED_SETTINGS: Final = (
    r"^(core\.(autocrlf|eol|filemode|ignorecase|precomposeunicode|repositoryformatversion|symlinks)"
    r"|extensions\.objectformat)$"
)
"""The names, as a pattern of `git config --get-regexp`."""
_SHA1_CHARS: Final = 40
_SETTING: Final = lazy_pattern(r"([a-z]+)\.([a-z]+)\n([A-Za-z0-9]{1,16})")
_COPIED_FILES: Final = ("info/exclude", "info/attributes", "shallow")


def make(scratch: str, common_dir: str, settings: bytes) -> dict[str, str]:
    """Make the directory below `scratch`; returns the variables that have git use it.

    `common_dir` is the git directory whose objects are read. `settings` are the copied settings, as
    `git config -z` prints them.
    """
    git_dir = os.path.join(scratch, "git")
    objects = os.path.join(git_dir, "objects")
    for made in (git_dir, objects, *(os.path.join(git_dir, each) for each in ("refs", "info"))):
        os.mkdir(made)
    _write(os.path.join(git_dir, "HEAD"), "ref: refs/heads/scratch\n")
    _write(os.path.join(git_dir, "config"), _format_settings(settings))
    for name in _COPIED_FILES:
        with suppress(OSError):
            shutil.copyfile(
                os.path.join(common_dir, name),
                os.path.join(git_dir, name),
                follow_symlinks=False,
            )
    known = os.path.join(common_dir, "objects").replace("\\", "\\\\").replace('"', '\\"')
    return {
        "GIT_DIR": git_dir,
        "GIT_INDEX_FILE": os.path.join(scratch, "index"),
        "GIT_OBJECT_DIRECTORY": objects,
        # A colon-separated list; quoted, because the path may contain a colon.
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{known}"',
    }


def settings_for(commit: str) -> bytes:
    """The settings that are needed to read a commit."""
    if len(commit) == _SHA1_CHARS:
        return b""
    return b"core.repositoryformatversion\n1\0extensions.objectformat\nsha256\0"


def _format_settings(settings: bytes) -> str:
    text = settings.decode(errors="replace")[: limits.GIT_FILE_BYTES_MAX]
    found = (_SETTING.fullmatch(each) for each in text.split("\0"))
    return "".join(f"[{each[1]}]\n{each[2]} = {each[3]}\n" for each in found if each is not None)


def _write(path: str, text: str) -> None:
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)
