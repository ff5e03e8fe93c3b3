"""Rules of ignore files mean what they mean to git, whatever is in them."""

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perdure.core.files import ignore
from tests.figures import Figure

_NAMES: Final = (
    "a",
    "b",
    "ab",
    "a b",
    "a ",
    "1",
    "[a]",
    "*",
    "!a",
    "#a",
    "a.b",
    "-",
    "\u00e9",
    "^",
)
_PIECES: Final = (
    *("a", "b", "ab", "a ", " ", "\\ ", "1", ".", "./", "/", "//", "*", "**", "**/", "/**", "***"),
    *("?", "[a]", "[!a]", "[^a]", "[a-b]", "[b-a]", "[]a]", "[a", "[[:digit:]]", "[[:alpha:]b]"),
    *(
        "[[:foo:]]",
        "[[:",
        "[:a:]",
        "[a-]",
        "[--b]",
        "[\\]a]",
        "[a/b]",
        "\\",
        "\\a",
        "\\*",
        "\\/",
        "**\\/",
    ),
    *("!", "\\!", "#", "\\#", "\t", "\r", "\x0b", "\u00e9", "[\u00e9]", "^", "-"),
)
LINES: Final = st.lists(st.sampled_from(_PIECES), max_size=5).map("".join)
FILES: Final = st.tuples(
    st.sampled_from(["", "", "\ufeff"]),
    st.lists(LINES, min_size=1, max_size=4).map("\n".join),
    st.sampled_from(["", "\n", "\r\n"]),
).map("".join)


class Repository:
    """A tree that has each name as a file and as a directory with the same names below it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._git("init", "--quiet")
        self.files: list[str] = []
        self.directories: list[str] = []
        for name in _NAMES:
            (root / "d").mkdir(exist_ok=True)
            (root / "d" / name).touch()
            self.files.append(f"d/{name}")
            (root / "e" / name).mkdir(parents=True)
            self.directories.append(f"e/{name}")
            for below in ("a", "b", "1"):
                (root / "e" / name / below).touch()
                self.files.append(f"e/{name}/{below}")
        for name in ("a", "ab", "1"):
            (root / name).touch()
            self.files.append(name)

    def ignored_by_git(self, rules: str) -> set[str]:
        (self.root / ".gitignore").write_bytes(rules.encode())
        paths = "\0".join((*self.files, *self.directories)).encode()
        result = self._git("check-ignore", "--no-index", "-z", "--stdin", input=paths)
        return {os.fsdecode(path) for path in result.split(b"\0") if path}

    def ignored_by_us(self, rules: str) -> set[str]:
        parsed = ignore.parse_ignore(rules)
        cases = [*((path, False) for path in self.files), *((d, True) for d in self.directories)]
        return {
            path for path, is_directory in cases if self._is_ignored(parsed, path, is_directory)
        }

    def _is_ignored(
        self, rules: tuple[ignore.IgnoreRule, ...], path: str, is_directory: bool
    ) -> bool:
        names = path.split("/")
        for depth in range(1, len(names)):
            if ignore.ignored(rules, "/".join(names[:depth]), is_directory=True):
                return True
        return bool(ignore.ignored(rules, path, is_directory=is_directory))

    def _git(self, *arguments: str, input: bytes = b"") -> bytes:
        environment = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.root)}
        result = subprocess.run(
            ("git", "-c", "core.excludesFile=", *arguments),
            cwd=self.root,
            env=environment,
            input=input,
            check=False,
            capture_output=True,
        )
        assert result.returncode in (0, 1), result.stderr
        return result.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("repository"))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(rules=FILES)
def test_whatever_the_rules_are_git_agrees(repository: Repository, rules: str) -> None:
    assert repository.ignored_by_us(rules) == repository.ignored_by_git(rules)


def test_every_piece_alone_means_what_git_means(repository: Repository, figure: Figure) -> None:
    rules = [*_PIECES, *(f"{one}{two}" for one in _PIECES for two in ("a", "/", "*", "/a", " "))]
    for rule in rules:
        assert repository.ignored_by_us(rule) == repository.ignored_by_git(rule), rule
    figure("rules compared with git", len(rules))
