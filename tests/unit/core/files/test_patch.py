"""Patches as text: what they say, where they fit, and what is refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.files import patch
from perdure.core.files.patch import AddFile, Chunk, DeleteFile, PatchError, UpdateFile
from tests.requirements import requirement


def wrapped(*lines: str) -> str:
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


def updated(text: str, *lines: str) -> str:
    (change,) = patch.parse(wrapped("*** Update File: f", *lines))
    assert isinstance(change, UpdateFile)
    return patch.apply(text, change.chunks)


@requirement("S187")
def test_every_kind_of_change_is_read() -> None:
    text = wrapped(
        "*** Add File: a.txt",
        "+one",
        "+",
        "*** Delete File: b.txt",
        "*** Update File: c.txt",
        "*** Move to: d/c.txt",
        "@@ def f():",
        " stays",
        "-goes",
        "+comes",
        "*** End of File",
    )
    chunk = Chunk(context="def f():", old=("stays", "goes"), new=("stays", "comes"), at_end=True)
    assert patch.parse(text) == (
        AddFile("a.txt", "one\n\n"),
        DeleteFile("b.txt"),
        UpdateFile("c.txt", (chunk,), "d/c.txt"),
    )


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "\n\n  {}\n",
        "<<'EOF'\n{}\nEOF",
        'apply_patch <<"END"\n{}\nEND',
        "<<EOF\n{}\nEOF\n",
    ],
)
def test_a_wrapper_around_the_patch_is_ignored(around: str) -> None:
    assert patch.parse(around.format(wrapped("*** Delete File: f"))) == (DeleteFile("f"),)
    crlf = wrapped("*** Delete File: f").replace("\n", "\r\n")
    assert patch.parse(around.format(crlf)) == (DeleteFile("f"),)


@requirement("S187")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begins with"),
        ("*** Begin Patch", "ends with"),
        ("*** Add File: f\n+x", "begins with"),
        (wrapped("hello"), "line 2 .* file header"),
        (wrapped("*** Add File: "), "names a path"),
        (wrapped("*** Add File: f", "x"), "line 3 .* file header"),
        (wrapped("*** Update File: f"), "changes nothing"),
        (wrapped("*** Update File: f", "@@"), "at least one line"),
        (wrapped("*** Update File: f", "@@", "-a", "bogus"), "begins with ' '"),
        (wrapped("*** Update File: f", "bogus"), "at least one line"),
        (wrapped("*** Rename File: f"), "file header"),
    ],
)
def test_a_malformed_patch_is_refused_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(PatchError, match=reason):
        patch.parse(text)


@pytest.mark.parametrize(
    ("text", "lines", "after"),
    [
        ("a\nb\nc\n", ("@@", " a", "-b", "+B"), "a\nB\nc\n"),
        ("a\nb\nc\n", ("-b", "+B"), "a\nB\nc\n"),
        ("x\na\nx\na\n", ("@@", " x", "-a", "+1", "@@", " x", "-a", "+2"), "x\n1\nx\n2\n"),
        ("f:\n x\ng:\n x\n", ("@@ g:", "- x", "+ y"), "f:\n x\ng:\n y\n"),
        ("a\nb", ("@@", "-b", "+c"), "a\nc\n"),
        ("a\n", ("@@", "+b"), "a\nb\n"),
        ("", ("@@", "+b"), "b\n"),
        ("a\n\nb\n", ("@@", " a", "", "-b", "+c"), "a\n\nc\n"),
        ("a\nb\na\n", ("@@", "-a", "+z", "*** End of File"), "a\nb\nz\n"),
        ("a\nb\n", ("@@", "-b", "+c", ""), "a\nc\n"),
        ("a\nb\n", ("@@", "-a", "-b"), ""),
        ("a  \nb\n", ("@@", " a", "-b", "+c"), "a\nc\n"),
        ("\ta\nb\n", ("@@", " a", "-b", "+c"), "a\nc\n"),
        ("say \u201chi\u201d \u2014 now\u2026\n", ("@@", '-say "hi" - now...', "+said"), "said\n"),
        ("a\r\nb\r\n", ("@@", " a", "-b", "+c"), "a\r\nc\r\n"),
        ("\ufeffa\n", ("@@", "-a", "+b"), "\ufeffb\n"),
        ("a\fb\nc\n", ("@@", "-c", "+d"), "a\fb\nd\n"),
    ],
)
def test_a_change_finds_its_place(text: str, lines: tuple[str, ...], after: str) -> None:
    assert updated(text, *lines) == after


def test_an_exact_place_beats_an_earlier_one_that_only_resembles_it() -> None:
    assert updated(" a\na\n", "@@", "-a", "+b") == " a\nb\n"


@requirement("S187")
@pytest.mark.parametrize(
    "lines",
    [
        ("@@", "-missing"),
        ("@@ missing", "+x"),
        ("@@", "-b", "+B", "@@", "-a", "+A"),
        ("@@", " a", "-c"),
        ("@@", *["-a"] * 9),
    ],
)
def test_a_change_that_does_not_fit_is_refused(lines: tuple[str, ...]) -> None:
    with pytest.raises(PatchError, match=r"change \d"):
        updated("a\nb\nc\n", *lines)


line = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)


@given(st.lists(line, min_size=1, max_size=12), st.data())
def test_replacing_any_run_of_lines_by_any_others_gives_exactly_that(
    lines: list[str], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(start + 1, len(lines)))
    new = data.draw(st.lists(line, max_size=4))
    chunk = Chunk(
        context=None,
        old=tuple(lines[:end]),
        new=(*lines[:start], *new),
        at_end=False,
    )
    text = "".join(f"{item}\n" for item in lines)
    expected = "".join(f"{item}\n" for item in (*lines[:start], *new, *lines[end:]))
    # A byte order mark as the first character is the mark of the file, not part of a line.
    if not text.startswith("\ufeff"):
        assert patch.apply(text, [chunk]) == expected


@given(st.text())
def test_no_text_makes_the_parser_fail_in_another_way(text: str) -> None:
    for given_text in (text, wrapped(text), wrapped("*** Update File: f", text)):
        try:
            changes = patch.parse(given_text)
        except PatchError:
            continue
        for change in changes:
            if isinstance(change, UpdateFile):
                with suppress(PatchError):
                    patch.apply(text, change.chunks)
