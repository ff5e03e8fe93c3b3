"""Unified diffs as the old and the new text of each place."""

import pytest

from perdure.acp.schema.content import Diff
from perdure.acp.show import diffs

TWO_PLACES = """\
--- a/one.txt
+++ b/one.txt
@@ -1,3 +1,3 @@
 a
-b
+B
 c
@@ -10,2 +10,3 @@
 j
+new
 k
"""


def test_each_place_is_a_diff_of_its_own() -> None:
    assert diffs.show_patch("/p", "one.txt", "modified", TWO_PLACES) == (
        Diff("/p/one.txt", "a\nB\nc\n", "a\nb\nc\n"),
        Diff("/p/one.txt", "j\nnew\nk\n", "j\nk\n"),
    )
    assert diffs.find_line(TWO_PLACES) == 1


@pytest.mark.parametrize(
    ("status", "patch", "old", "new"),
    [
        ("added", "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+b\n", None, "a\nb\n"),
        ("deleted", "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "a\n", ""),
        (
            "modified",
            "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
            "a",
            "b",
        ),
        ("modified", "@@ -1,2 +1,2 @@\n--- a\n+++ b\n c\n", "-- a\nc\n", "++ b\nc\n"),
    ],
)
def test_new_deleted_and_odd_files(status: str, patch: str, old: str | None, new: str) -> None:
    assert diffs.show_patch("/p", "x", status, patch) == (Diff("/p/x", new, old),)


@pytest.mark.parametrize("patch", ["", "no diff", "@@ garbage @@\n+a", "\n\n"])
def test_what_is_no_diff_shows_nothing(patch: str) -> None:
    assert diffs.show_patch("/p", "x", "modified", patch) == ()
    assert diffs.find_line(patch) is None


def test_places_are_absolute_and_named_once() -> None:
    found = diffs.places("/p", [("a", None), ("a", 3), ("/abs", None), ("", 1)])
    assert [(place.path, place.line) for place in found] == [("/p/a", 3), ("/abs", None)]
