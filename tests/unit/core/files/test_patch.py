"""Patches as text: what they say, where they fit, and what is refused."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.files import patch
from perdure.core.files.patch import AddFile, Chunk, DeleteFile, PatchError, UpdateFile
from tests.requirements import requirement

SECONDS_MAX: Final = 10.0
"""Processor time, several times what the slowest row needs."""


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


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("same\n" * 300_000, ("@@", *[" same"] * 20_000, "-other")),
        ("same\n" * 300_000 + "end\n", ("@@", *[" same"] * 20_000, "-other", "+end")),
        ("same\n" * 300_000, ("@@", "- same ", "+b") * 20_000),
        ("a\nb\n" * 150_000, ("@@", "-a", "-a", "+b") * 20_000),
        ("b\n" + "a\n" * 400_000 + "c\n" + "b \n" * 400_000, ("@@", "-b", "+b") * 20_000),
        ("a\n" * 100_000 + "b\n", ("@@ b", "+c", "@@ a", "+c") * 20_000),
        ("\n" * 900_000, ("@@", "-", "+a") * 1_000),
        ("".join(f"{n}\n" for n in range(300_000)), ("@@", "- 299999", "+x")),
    ],
)
def test_no_patch_takes_more_than_linear_time(text: str, lines: tuple[str, ...]) -> None:
    began = time.thread_time()
    with suppress(PatchError):
        updated(text, *lines)
    # Quadratic time would be minutes.
    assert time.thread_time() - began < SECONDS_MAX


def test_a_patch_that_searches_a_long_file_in_vain_too_often_is_refused() -> None:
    text = "a\n" + "a \n" * 3_000 + "b\n" * 500_000
    with pytest.raises(PatchError, match="too many changes for a file of this length"):
        updated(text, *("@@", "-a", "+c") * 3_000)


def test_files_and_patches_of_too_many_lines_are_refused() -> None:
    with pytest.raises(PatchError, match="the file has more than 1000000 lines"):
        updated("\n" * 1_000_000, "@@", "-", "+a")
    with pytest.raises(PatchError, match="it has more than 1000000 lines"):
        patch.parse(wrapped("*** Add File: a", *["+"] * 1_000_000))


line = st.sampled_from(["a", "a ", " a", "“a”", '"a"', "b", ""])


@given(st.lists(line, max_size=12), st.lists(line, min_size=1, max_size=3))
def test_a_passage_is_found_where_comparing_every_line_finds_it(
    lines: list[str], wanted: list[str]
) -> None:
    """The first place that is equal in the strictest of the four ways that find one."""
    keys: list[Callable[[str], str]] = [
        str,
        str.rstrip,
        str.strip,
        lambda line: line.replace("“", '"').replace("”", '"').strip(),
    ]
    starts = range(len(lines) - len(wanted) + 1)
    found = next(
        (
            start
            for key in keys
            for start in starts
            if [*map(key, lines[start : start + len(wanted)])] == [*map(key, wanted)]
        ),
        None,
    )
    chunk = Chunk(context=None, old=tuple(wanted), new=("!",), at_end=False)
    text = "".join(f"{line}\n" for line in lines)
    if found is not None:
        whole = [*lines[:found], "!", *lines[found + len(wanted) :]]
        assert patch.apply(text, (chunk,)) == "".join(f"{line}\n" for line in whole)
    elif wanted[-1]:
        with pytest.raises(PatchError):
            patch.apply(text, (chunk,))
