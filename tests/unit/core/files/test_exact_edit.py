"""Exact edits of text."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.files import exact_edit
from perdure.core.files.exact_edit import Ambiguous, Edited, NotFound
from perdure.core.limits import EDIT_PATCH_CHARS_MAX
from tests.requirements import requirement


def edit(
    text: str, old: str, new: str, *, replace_all: bool = False
) -> Edited | NotFound | Ambiguous:
    return exact_edit.apply(text, old=old, new=new, replace_all=replace_all)


@requirement("S176")
@pytest.mark.parametrize(
    ("text", "old", "new", "result"),
    [
        ("a b c", "b", "x", Edited("a x c", 1)),
        ("a b c", "b ", "", Edited("a c", 1)),
        ("a b c", "z", "x", NotFound()),
        ("a  b", "a b", "x", NotFound()),
        ("b b", "b", "x", Ambiguous(2)),
        ("aaa", "aa", "x", Ambiguous(2)),
        ("", "a", "b", NotFound()),
        ("a\r\nb\r\n", "a\nb", "x\ny", Edited("x\r\ny\r\n", 1)),
        ("a\nb\n", "a\r\nb", "x\r\ny", Edited("x\ny\n", 1)),
        ("a\r\nb\nc\n", "b\nc", "x\ny", Edited("a\r\nx\ny\n", 1)),
        ("\ufeffa", "a", "b", Edited("\ufeffb", 1)),
        ("\ufeffa", "\ufeffa", "\ufeffb", Edited("\ufeffb", 1)),
    ],
)
def test_a_passage_is_replaced_where_it_stands_exactly_once(
    text: str, old: str, new: str, result: Edited | NotFound | Ambiguous
) -> None:
    assert edit(text, old, new) == result


def test_every_occurrence_can_be_replaced_at_once() -> None:
    assert edit("b b\r\nb", "b", "c", replace_all=True) == Edited("c c\r\nc", 3)


@pytest.mark.parametrize(
    ("old", "new", "refusal"), [("", "x", "empty"), ("x", "x", "identical"), ("x", "", None)]
)
def test_a_request_that_cannot_change_anything_is_refused(
    old: str, new: str, refusal: str | None
) -> None:
    assert exact_edit.find_fault(old=old, new=new) == refusal


def test_the_preview_is_short() -> None:
    preview = exact_edit.preview(old="x" * 1_000, new="\n".join("abcdefghij"))
    assert preview.splitlines()[0] == "- " + "x" * 240
    assert preview.splitlines()[-1] == "+ ... 4 more lines"


def test_the_diff_shows_each_change_with_its_surroundings() -> None:
    before = "".join(f"line {number}\n" for number in range(40))
    after = before.replace("line 5\n", "five\n").replace("line 30\n", "")
    diff = exact_edit.line_diff("a.txt", before=before, after=after)
    assert (diff.additions, diff.deletions) == (1, 2)
    assert diff.patch.startswith("--- a/a.txt\n+++ b/a.txt\n@@ -3,7 +3,7 @@\n line 2\n")
    assert "@@ -28,7 +28,6 @@\n" in diff.patch


def test_the_diff_of_a_file_without_a_final_newline_says_so() -> None:
    diff = exact_edit.line_diff("a", before="a", after="b")
    assert diff.patch.count("\\ No newline at end of file\n") == 2


def test_a_change_of_a_huge_file_is_summed_up_quickly() -> None:
    before = "".join(f"{number}\n" for number in range(200_000))
    started = process_time()
    diff = exact_edit.line_diff("a", before=before, after=before.replace("1", "one"))
    assert process_time() - started < 3
    assert diff.patch == ""
    assert diff.additions == diff.deletions > 0


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("a b\n" * 1_000_000, "c b\n" * 1_000_000, (1_000_000, 1_000_000)),
        ("a\n" * 1_000_000, "ad" * 1_000_000, (1, 1_000_000)),
        ("a" * 3_000_000, "a" * 2_999_999 + "b", (1, 1)),
        ("\n" * 2_000_000, "\n" * 1_999_998, (0, 2)),
    ],
)
def test_a_change_of_millions_of_lines_is_counted_and_not_shown(
    before: str, after: str, counts: tuple[int, int]
) -> None:
    began = process_time()
    diff = exact_edit.line_diff("a", before=before, after=after)
    assert (diff.additions, diff.deletions) == counts
    assert len(diff.patch) <= EDIT_PATCH_CHARS_MAX
    assert process_time() - began < 2


@given(st.text(alphabet="ab\n", max_size=40), st.text(alphabet="ab\n", max_size=40))
def test_a_diff_says_how_to_make_the_second_text_of_the_first(before: str, after: str) -> None:
    diff = exact_edit.line_diff("f", before=before, after=after)
    assert applied(before, diff.patch) == after


def applied(text: str, diff: str) -> str:
    """What a unified diff makes of a text."""
    lines = text.splitlines(keepends=True)
    result: list[str] = []
    at, was_new = 0, False
    for line in diff.splitlines(keepends=True)[2:]:
        if line.startswith("@@"):
            first, _, length = line.split()[1].removeprefix("-").partition(",")
            start = int(first) - (length != "0")
            result += lines[at:start]
            at = start
        elif line.startswith("\\"):
            result[-1:] = [result[-1].removesuffix("\n")] if was_new else result[-1:]
        else:
            was_new = line[0] != "-"
            if was_new:
                result.append(line[1:])
            at += line[0] != "+"
    return "".join([*result, *lines[at:]])
