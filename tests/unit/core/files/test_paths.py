"""Which paths govern an agent, by name."""

import pytest

from perdure.core.files import paths


@pytest.mark.parametrize(
    ("path", "protected"),
    [
        ("/p/opencode.json", True),
        ("/p/a/b/opencode.jsonc", True),
        ("/p/OPENCODE.json", True),
        ("/p/opencode.j\u017fon", True),
        ("/p/.opencode", True),
        ("/p/.opencode/agents/x.md", True),
        ("/p/.opencode/plans/x.md", False),
        ("/p/.opencode/plans/.git/x", True),
        ("/p/.opencode/plans/opencode.json", True),
        ("/p/.git", True),
        ("/p/sub/.GIT/hooks/x", True),
        ("/p/.g\u200dit/x", True),
        ("/p/.gitignore", False),
        ("/p/.github/workflows/x.yml", False),
        ("/p/opencode.json/x", False),
        ("/p/src/git/x", False),
        ("/", False),
        ("", False),
    ],
)
def test_protection_is_by_name(path: str, *, protected: bool) -> None:
    assert paths.is_protected(path) is protected
