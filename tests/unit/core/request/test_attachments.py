"""Paths that a text mentions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core import limits
from perdure.core.request import attachments


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@a.py", ("a.py",)),
        ("see @src/a.py, and @src/b.py.", ("src/a.py", "src/b.py")),
        ("(@src/a.py)", ("src/a.py",)),
        ("twice @a @a", ("a",)),
        ("me@example.org", ()),
        ("@/etc/passwd @~/.ssh", ()),
        ("@ alone and @@double", ()),
        ("@../up", ("../up",)),
        ("`@decorator`", ("decorator",)),
        ("", ()),
    ],
)
def test_a_mention_is_an_at_sign_before_a_relative_path(text: str, found: tuple[str, ...]) -> None:
    assert attachments.mentioned_paths(text) == found


def test_what_is_known_already_is_not_mentioned_again() -> None:
    assert attachments.mentioned_paths("@a and @b", known={"a"}) == ("b",)


@given(st.text(alphabet="@a/. \n\0", max_size=400))
def test_any_text_has_few_and_short_mentions(text: str) -> None:
    found = attachments.mentioned_paths(text)
    assert len(found) <= limits.MENTIONS_MAX
    assert all(path and "\0" not in path for path in found)


def test_a_text_full_of_at_signs_is_read_quickly_and_bounded() -> None:
    found = attachments.mentioned_paths(
        "@" * 1_000_000 + " " + " ".join(f"@f{n}" for n in range(1_000))
    )
    assert len(found) == limits.MENTIONS_MAX
