"""What is condensed, what is kept, and what the model is asked for."""

import pytest

from perdure.core import compaction, limits, transcript
from perdure.core.compaction import Selection
from perdure.schema import message as messages
from perdure.schema.ids import MessageID, ToolCallID
from perdure.schema.message import (
    AssistantMessage,
    AssistantPart,
    CompactionMessage,
    Created,
    ReasoningPart,
    SessionMessage,
    Span,
    TextPart,
    ToolPart,
    ToolTime,
    UserMessage,
)
from perdure.schema.model import ModelLimit
from perdure.schema.prompt import FileAttachment
from perdure.schema.tool import (
    CompletedState,
    ErrorState,
    FileContent,
    PendingState,
    TextContent,
    ToolState,
    error_info,
)
from tests.fixtures import MODEL, SESSION
from tests.requirements import requirement

ID = MessageID("msg_one")
AT = Created(created=1)


def user(text: str) -> UserMessage:
    return UserMessage(id=ID, time=AT, text=text)


def of_tokens(tokens: int, letter: str = "x") -> UserMessage:
    """A message whose text, with its label, is estimated at exactly this many."""
    return user(letter * (4 * tokens - len("[User]: ")))


def assistant(*parts: AssistantPart) -> AssistantMessage:
    return AssistantMessage(
        id=ID, time=Span(created=1), agent="build", model=MODEL, content=tuple(parts)
    )


def tool(state: ToolState) -> ToolPart:
    return ToolPart(id=ToolCallID("c"), name="read", state=state, time=ToolTime(created=1))


def completed(*content: TextContent | FileContent) -> CompletedState:
    return CompletedState(
        input={"path": "a"}, content=content, output_paths=(), structured={"n": 1}
    )


def checkpoint(summary: str = "so far", recent: str = "[User]: lately") -> CompactionMessage:
    return CompactionMessage(id=ID, time=AT, reason="manual", summary=summary, recent=recent)


def selected(*history: SessionMessage, keep: int = 100) -> Selection:
    selection = compaction.select(history, keep_tokens=keep)
    assert selection is not None
    return selection


@pytest.mark.parametrize(
    ("sizes", "keep", "condensed"),
    [
        ([50, 50], 99, 1),
        ([50, 50, 50], 100, 1),
        ([10, 200, 10], 100, 2),
        ([10, 10, 101], 100, 3),
        ([10, 10, 100], 100, 2),
        ([60, 60], 10, 2),
        ([5_000, 5_000, 3_000], limits.COMPACTION_KEEP_TOKENS, 1),
    ],
)
def test_the_newest_messages_that_fit_are_kept_whole(
    sizes: list[int], keep: int, condensed: int
) -> None:
    history = [of_tokens(size, letter) for size, letter in zip(sizes, "abc", strict=False)]
    texts = [transcript.text_of(message) for message in history]
    selection = selected(*history, keep=keep)
    assert selection.conversation == "\n\n".join(texts[:condensed])
    assert selection.recent == "\n\n".join(texts[condensed:])


@pytest.mark.parametrize(
    "history",
    [
        [],
        [user("short")],
        [of_tokens(50), of_tokens(50)],
        [checkpoint()],
        [messages.AgentSwitchedMessage(id=ID, time=AT, agent="plan")],
        [assistant()],
    ],
)
def test_a_conversation_that_fits_is_left_alone(history: list[SessionMessage]) -> None:
    assert compaction.select(history, keep_tokens=100) is None


def test_an_earlier_checkpoint_is_carried_forward() -> None:
    selection = selected(checkpoint(), user("more"))
    assert selection.previous_summary == "so far"
    assert selection.conversation == "[User]: lately"
    assert selection.recent == "[User]: more"
    asked = compaction.request_text(selection)
    assert "<previous-summary>\nso far\n</previous-summary>" in asked
    assert "<conversation>\n[User]: lately\n</conversation>" in asked


def test_the_request_names_every_section_and_no_summary_that_never_was() -> None:
    asked = compaction.request_text(Selection(conversation="x", previous_summary="", recent="y"))
    sections = ("Objective", "Important Details", "Work State", "Next Move", "Relevant Files")
    places = [asked.index(f"## {section}\n") for section in sections]
    assert places == sorted(places)
    assert "previous" not in asked
    assert "y" not in asked.partition("</conversation>")[0].partition("<conversation>")[2]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 0),
        ("ab", 1),
        ("abcdef", 2),
        ("é" * 4, 1),
        ("😀" * 4, 2),
        ("x" * 10**6, 250_000),
    ],
)
def test_tokens_are_estimated_from_the_length_of_the_text(text: str, tokens: int) -> None:
    assert compaction.estimate(text) == tokens


@pytest.mark.parametrize(
    ("context", "output", "tokens", "fits"),
    [
        (0, 0, 10**6, True),
        (10_000, 0, 10_000 - 4_096, True),
        (10_000, 0, 10_001 - 4_096, False),
        (10_000, 1_000, 9_000, True),
        (10_000, 32_000, 9_000, False),
        (1_000, 32_000, 1, False),
    ],
)
def test_a_request_must_leave_room_for_the_summary(
    context: int, output: int, tokens: int, *, fits: bool
) -> None:
    limit = ModelLimit(context=context, output=output)
    assert compaction.fits("x" * 4 * tokens, limit) is fits


@requirement("S36")
@pytest.mark.parametrize(
    ("message", "text"),
    [
        (user("hi\nthere"), "[User]: hi\nthere"),
        (
            UserMessage(
                id=ID,
                time=AT,
                text="see",
                files=(
                    FileAttachment(
                        uri="data:image/png;base64,AAAA", mime="image/png", name="a.png"
                    ),
                    FileAttachment(uri="file:///b", mime="text/plain"),
                ),
            ),
            "[User]: see\n[Attached image/png: a.png]\n[Attached text/plain]",
        ),
        (
            assistant(
                ReasoningPart(id="r", text=""),
                ReasoningPart(id="s", text="hm"),
                TextPart(id="t", text="so"),
            ),
            "[Assistant reasoning]: hm\n[Assistant]: so",
        ),
        (
            assistant(tool(completed(TextContent(text="found"), FileContent(uri="u", mime="m/x")))),
            '[Assistant tool call]: read({"path":"a"})\n[Tool result]: found\n[Attached m/x]',
        ),
        (
            assistant(tool(completed())),
            '[Assistant tool call]: read({"path":"a"})\n[Tool result]: {"n":1}',
        ),
        (
            assistant(
                tool(ErrorState(input={}, content=(), structured={}, error=error_info("gone")))
            ),
            "[Assistant tool call]: read({})\n[Tool error]: gone",
        ),
        (
            assistant(tool(PendingState(input='{"pa'))),
            '[Assistant tool call]: read({"pa)\n[Tool error]: Tool execution interrupted',
        ),
        (messages.SystemMessage(id=ID, time=AT, text="Tuesday"), "[System update]: Tuesday"),
        (
            messages.SyntheticMessage(id=ID, time=AT, session_id=SESSION, text="note"),
            "[Synthetic context]: note",
        ),
        (
            messages.ShellMessage(
                id=ID, time=Span(created=1), call_id=ToolCallID("c"), command="ls", output="a b"
            ),
            "[Shell]: ls\na b",
        ),
        (checkpoint(), ""),
        (messages.ModelSwitchedMessage(id=ID, time=AT, model=MODEL), ""),
    ],
)
def test_every_message_has_its_labelled_text(message: SessionMessage, text: str) -> None:
    assert transcript.text_of(message) == text


def test_long_tool_output_is_cut_and_says_so() -> None:
    text = transcript.text_of(assistant(tool(completed(TextContent(text="y" * 5_000)))))
    assert text.count("y") == limits.TRANSCRIPT_RESULT_CHARS_MAX
    assert text.endswith("[3000 more characters left out]")
