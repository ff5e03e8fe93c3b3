"""Which paths other programs execute or obey, by name."""

import pytest

from perdure.core.approval import protected_paths
from perdure.core.approval.protected_paths import TABLE, Protection


def example(entry: Protection) -> str:
    """A path that the entry is about."""
    return f"{entry.pattern}below/x" if entry.pattern.endswith("/") else entry.pattern


def pattern_of(path: str) -> str | None:
    found = protected_paths.find_protection(path)
    return None if found is None else found.pattern


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.pattern)
def test_an_entry_protects_in_every_folder_and_spelling(entry: Protection) -> None:
    path = example(entry).replace("*", "any")
    spellings = {
        path,
        f"/p/{path}",
        f"/p/packages/web/{path}",
        f"/p/{path.upper()}",
        f"/p/{path.swapcase()}",
        f"/p/{path[0]}\u200c{path[1:]}",
        f"/p/{path}.",
        f"/p/{path} ",
    }
    assert {spelling: pattern_of(spelling) for spelling in spellings} == dict.fromkeys(
        spellings, pattern_of(path)
    )
    assert pattern_of(path) is not None


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.pattern)
def test_a_rule_names_an_entry_and_does_not_by_chance(entry: Protection) -> None:
    path = f"/p/{example(entry).replace('*', 'any')}"
    for pattern in ("*", "**", "**/*", "*.*", "/p/*", "?*", "src/*"):
        assert not protected_paths.is_named_by(pattern, path)
    named = example(entry).replace("below/x", "*")
    assert protected_paths.is_named_by(named, path)
    assert protected_paths.is_named_by(f"packages/*/{named}", path)


@pytest.mark.parametrize(
    ("path", "governs"),
    [
        ("/p/opencode.json", True),
        ("/p/a/b/opencode.jsonc", True),
        ("/p/opencode.j\u017fon", True),
        ("/p/.opencode", True),
        ("/p/.opencode/agents/x.md", True),
        ("/p/.opencode/plans/.git/x", True),
        ("/p/.opencode/plans/opencode.json", True),
        ("/p/.opencode/AGENTS.md", True),
        ("/p/.git", True),
        ("/p/sub/.GIT/hooks/x", True),
        ("/p/.g\u200dit/x", True),
        ("/p/.git./x", True),
        ("/p/.git/AGENTS.md", True),
        ("/p/AGENTS.md", False),
        ("/p/.github/workflows/x.yml", False),
        ("/p/.env.production", False),
        ("/p/a.CODE-workspace", False),
    ],
)
def test_what_holds_the_agents_own_rules_governs(path: str, *, governs: bool) -> None:
    found = protected_paths.find_protection(path)
    assert found is not None
    assert found.governs is governs


@pytest.mark.parametrize(
    "path",
    [
        *("/p/.opencode/plans/x.md", "/p/.gitignore", "/p/.github/CODEOWNERS", "/p/.github/x.yml"),
        *("/p/opencode.json/x", "/p/src/git/x", "/", "", "/p/Makefile", "/p/Dockerfile"),
        *("/p/.env.example", "/p/environment.py", "/p/.environment", "/p/agents.mdx"),
        *("/p/src/AGENTS.md.bak", "/p/workflows/x.yml", "/p/pyproject.toml", "/p/env"),
        *("/p/AGENTS.md/x", "/p/tsconfig.json", "/p/.vscodeignore", "/p/README.md"),
    ],
)
def test_names_that_only_look_alike_are_ordinary(path: str) -> None:
    assert pattern_of(path) is None


@pytest.mark.parametrize(
    ("pattern", "path", "named"),
    [
        (".env*", "/p/.env", True),
        ("*.env", "/p/.env", True),
        (".env.*", "/p/.env.local", True),
        ("AGENTS.md", "/p/AGENTS.md", True),
        ("agents.MD", "/p/AGENTS.md", True),
        ("**/AGENTS.md", "/p/a/AGENTS.md", True),
        ("*.md", "/p/AGENTS.md", False),
        ("docs/*", "/p/docs/AGENTS.md", False),
        (".github/*", "/p/.github/workflows/a.yml", True),
        (".git/*", "/p/.git/config", True),
        (".git*", "/p/.git/config", False),
        (".opencode/*", "/p/.opencode/agents/a.md", True),
        (".o*", "/p/.opencode/agents/a.md", False),
        ("/users/u/.config/x/a.md", "/users/u/.config/x/a.md", True),
        ("/users/u/.config/*", "/users/u/.config/x/a.md", False),
    ],
)
def test_a_rule_has_to_name_the_file_or_its_folder(pattern: str, path: str, *, named: bool) -> None:
    assert protected_paths.is_named_by(pattern, path) is named


@pytest.mark.parametrize(
    ("before", "after", "touched"),
    [
        (b'{"scripts": {"a": "b"}}', b'{"scripts": {"a": "c"}}', True),
        (b'{"scripts": {"a": "b"}}', b"{}", True),
        (b"{}", b'{"scripts": {"postinstall": "x"}}', True),
        (None, b'{"scripts": {}}', True),
        (b'{"scripts": {}}', None, True),
        (b'{"version": "1"}', b'{"version": "2"}', False),
        (b'{"dependencies": {}}', b'{"dependencies": {"a": "1"}}', False),
        (None, b'{"name": "x"}', False),
        (b"not json", b"{}", True),
        (b"{}", b"[]", True),
        (b"{}", b"\xff", True),
        (b"{}", b'{"a": 1, "scripts": {"x": "y"}}', True),
    ],
)
def test_of_a_package_only_the_fields_that_are_run_are_protected(
    before: bytes | None, after: bytes | None, *, touched: bool
) -> None:
    found = protected_paths.find_protection("/p/package.json")
    assert found is not None
    assert protected_paths.is_touched(found, before=before, after=after) is touched


def test_every_change_of_another_file_counts() -> None:
    found = protected_paths.find_protection("/p/AGENTS.md")
    assert found is not None
    assert protected_paths.is_touched(found, before=b"a", after=b"a")
