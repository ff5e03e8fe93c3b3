"""What commands print for people: Markdown, tool calls, totals and suggestions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli import suggestion
from perdure.cli.render import tool_calls
from perdure.cli.render.markdown import MarkdownText
from perdure.cli.render.session_text import Totals, describe_totals
from perdure.cli.render.tables import count, plural
from perdure.cli.style import Span, Style, plain_text
from perdure.schema.codec import JsonObject


def rendered(text: str, *, pieces: int = 1) -> list[Span]:
    markdown = MarkdownText()
    size = max(1, -(-len(text) // pieces))
    spans: list[Span] = []
    for start in range(0, len(text), size):
        spans += markdown.feed(text[start : start + size])
    return [*spans, *markdown.finish()]


def styled(text: str) -> dict[str, Style]:
    return {span.text: span.style for span in rendered(text) if span.style is not Style.PLAIN}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title", {"Title": Style.BOLD}),
        ("a **b** c", {"b": Style.BOLD}),
        ("a *b* _c_", {"b": Style.ITALIC, "c": Style.ITALIC}),
        ("a `b**c**`", {"b**c**": Style.CYAN}),
        ("> quoted", {"| ": Style.DIM, "quoted": Style.DIM}),
        ("- item", {"- ": Style.CYAN}),
        ("12. item", {"12. ": Style.CYAN}),
        ("[a](http://b)", {"a": Style.UNDERLINE, " (http://b)": Style.DIM}),
        ("```\n# code\n```", {"  # code": Style.CYAN}),
        ("a snake_case_name and 2 * 3 * 4", {}),
        ("a ** b ` c [d] (e)", {}),
        (r"\*not\* \`this\`", {}),
    ],
)
def test_markdown_is_shown_by_styles(text: str, expected: dict[str, Style]) -> None:
    assert styled(text) == expected


@given(st.text(alphabet="ab *_`#->[]()\\\n1.~|", max_size=200), st.integers(1, 50))
def test_text_in_pieces_is_shown_like_text_at_once(text: str, pieces: int) -> None:
    assert plain_text(rendered(text, pieces=pieces)) == plain_text(rendered(text))


@given(st.text(alphabet="ab \n", max_size=200))
def test_text_without_marks_stays_as_it_is(text: str) -> None:
    assert plain_text(rendered(text, pieces=7)) == text


def test_an_open_mark_does_not_hold_back_a_long_line() -> None:
    markdown = MarkdownText()
    assert len(plain_text(markdown.feed("*" + "a" * 2_000))) > 1_000


@pytest.mark.parametrize(
    ("tool", "input", "line"),
    [
        ("bash", {"command": "ls -l", "workdir": "src"}, "bash ls -l (workdir src)"),
        ("read", {"path": "a.py", "offset": 10}, "read a.py (offset 10)"),
        ("task", {"subagent_type": "explore", "description": "look"}, "task explore look"),
        ("unknown", {"a": [1]}, 'unknown {"a": [1]}'),
        ("unknown", {}, "unknown"),
        ("bash", {}, "bash"),
    ],
)
def test_a_call_is_one_readable_line(tool: str, input: JsonObject, line: str) -> None:
    assert tool_calls.describe_call(tool, input) == line


@pytest.mark.parametrize(
    ("tool", "structured", "told"),
    [
        ("bash", {"exit": 1, "truncated": False}, "exit status 1"),
        ("bash", {"job": "job_1"}, "runs in the background as job_1"),
        ("glob", {"entries": [1], "truncated": True}, "1 file or more"),
        ("grep", {"matches": [1, 2]}, "2 matches"),
        ("grep", {"matches": "damaged"}, ""),
        ("edit", {"files": [{"additions": 2, "deletions": 1}]}, "1 file changed, +2 -1"),
        ("unknown", None, ""),
    ],
)
def test_what_came_of_a_call_is_told_in_a_few_words(
    tool: str, structured: JsonObject, told: str
) -> None:
    assert tool_calls.describe_result(tool, structured) == told


def test_a_long_diff_is_cut_and_says_so() -> None:
    spans = tool_calls.render_diff("+line\n" * 500, lines_max=10)
    assert len(spans) == 11
    assert "490 more lines" in spans[-1].text


def test_the_closing_line_has_tokens_the_cached_share_cost_and_time() -> None:
    totals = Totals(turns=2, tokens=12_345, cached=6_000, cost=0.0421)
    assert describe_totals(totals, 3.21) == (
        "2 turns · 12.3k tokens (49% cached) · $0.0421 · 3.2 s"
    )
    assert describe_totals(Totals(turns=1), 300) == "1 turn · $0.0000 · 5.0 min"


def test_numbers_are_said_as_people_say_them() -> None:
    assert [count(it) for it in (0, 999, 1_000, 2_500_000)] == ["0", "999", "1.0k", "2.5M"]
    assert [plural(1, "match"), plural(1_000, "match")] == ["1 match", "1,000 matches"]


@pytest.mark.parametrize(
    ("word", "known", "close"),
    [
        ("sesions", ["sessions", "serve"], ["sessions"]),
        ("gpt-5", ["openai/gpt-5-mini", "demo/demo"], ["openai/gpt-5-mini"]),
        ("xyzzy", ["sessions", "serve"], []),
        ("", ["sessions"], []),
    ],
)
def test_the_closest_words_are_suggested(word: str, known: list[str], close: list[str]) -> None:
    assert suggestion.find_close(word, known) == close
