"""What is under version control says nothing about the machine it was written on."""

import re
from pathlib import Path
from typing import Final

from tests.requirements import requirement
from tests.tidy import source_tree
from tests.tidy.source_tree import ROOT

# Written in two halves, so that this file does not contain what it forbids.
REGISTRY_HOSTS: Final = tuple(
    name + rest
    for name, rest in (
        ("pypi", ".org"),
        ("files.python", "hosted.org"),
        ("registry.npm", "js.org"),
        ("registry.yarn", "pkg.com"),
        ("npm.pkg.git", "hub.com"),
    )
)
MACHINE_PATHS: Final = {
    first + rest: re.compile(f"(?<![A-Za-z0-9_.-]){first}{rest}{what}")
    for first, rest, what in (
        ("/ro", "ot/", r"[\w.]"),
        ("/ho", "me/", r"(?!me\b|you\b|user\b|ada\b)[a-z]"),
        ("/Us", "ers/", r"(?!me\b|you\b|ada\b)[a-z]"),
        ("/wo", "rk/", "(main|shared)"),
        ("/op", "t/", "(pypi|wheels)"),
    )
}
"""By how they begin: a file without that is not searched further."""


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_file_names_a_package_registry() -> None:
    found = [
        f"{relative(path)}: {host}"
        for path in source_tree.committed_files()
        for text in [source_tree.text_of(path)]
        for host in REGISTRY_HOSTS
        if host in text
    ]
    assert found == []


def test_no_file_names_a_folder_of_the_writers_machine() -> None:
    found = [
        f"{relative(path)}: {match.group()}"
        for path in source_tree.committed_files()
        for text in [source_tree.text_of(path)]
        for begin, pattern in MACHINE_PATHS.items()
        if begin in text
        for match in pattern.finditer(text)
    ]
    assert found == []


@requirement("S165")
def test_the_schema_changelog_names_each_durable_event() -> None:
    changelog = (ROOT / "docs" / "SCHEMA_CHANGELOG.md").read_text(encoding="utf-8")
    manifest = (source_tree.PACKAGE / "schema" / "manifest.py").read_text(encoding="utf-8")
    names = re.findall(r'Definition\("([a-z.]+)", (\d+)', manifest)
    assert names
    assert [f"{n}.{v}" for n, v in names if f"`{n}.{v}`" not in changelog] == []


@requirement("S165")
def test_each_entry_of_the_schema_changelog_is_complete() -> None:
    changelog = (ROOT / "docs" / "SCHEMA_CHANGELOG.md").read_text(encoding="utf-8")
    entries = re.split(r"^## (?=\d{4} )", changelog, flags=re.MULTILINE)[1:]
    assert entries
    for entry in entries:
        for part in ("**Affected.**", "**Change.**", "**Reason.**", "**Compatibility.**"):
            assert part in entry, f"{entry.splitlines()[0]} lacks {part}"
