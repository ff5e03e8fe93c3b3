"""question: what the person is asked, what the model is told, and what stops the run."""

import asyncio

import pytest

from perdure.core import limits
from perdure.location.approval.questions import LocationQuestions
from perdure.ports import PermissionBlockedError, QuestionRejectedError
from perdure.schema.approval.permission import Headless
from perdure.schema.approval.question import QuestionRequest
from perdure.schema.codec import JsonObject
from perdure.schema.live_event import LiveEvent
from perdure.testing import SeededIds
from perdure.tools.api.registry import Settled, ToolError, ToolRegistry, ToolSuccess
from perdure.tools.builtin.question import make_question
from tests.contract.tools.tool_bench import CONTEXT, ToolBench, text_of
from tests.requirements import requirement

OPTIONS = [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]
COLOUR: JsonObject = {"question": "Which colour?", "header": "Colour", "options": OPTIONS}
SIZE: JsonObject = {"question": "Which size?", "header": "Size", "options": []}


class Asker:
    """The tool on a real desk of its own."""

    def __init__(self, bench: ToolBench, *, headless: Headless = "wait") -> None:
        self.asked = asyncio.Event()
        self.desk = LocationQuestions(ids=SeededIds(), publish=self._hear, headless=headless)
        self._registry = ToolRegistry()
        self._tool = make_question(bench.environment, self.desk)

    def _hear(self, event: LiveEvent) -> None:
        if isinstance(event, QuestionRequest):
            self.asked.set()

    async def call(self, *questions: JsonObject) -> Settled:
        with self._registry.register(self._tool):
            offered = self._registry.materialize(())
            return await offered.settle("question", {"questions": list(questions)}, CONTEXT)

    async def request(self) -> QuestionRequest:
        async with asyncio.timeout(5):
            await self.asked.wait()
        return self.desk.list()[0]


@requirement("S183")
async def test_questions_are_asked_and_answered_in_order(bench: ToolBench) -> None:
    asker = Asker(bench)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(asker.call(COLOUR | {"multiple": True}, SIZE))
        request = await asker.request()
        asker.desk.reply(request.id, (("red", "a shade of blue"), ()))
    settled = task.result()
    assert isinstance(settled, ToolSuccess)
    assert [question.question for question in request.questions] == [
        "Which colour?",
        "Which size?",
    ]
    assert request.questions[0].takes_many
    assert settled.structured == {"answers": [["red", "a shade of blue"], []]}
    assert text_of(settled) == (
        "The person answered:\n"
        '"Which colour?" = "red", "a shade of blue"\n'
        '"Which size?" = (unanswered)'
    )
    assert bench.desk.questions() == [("question", ("*",))]
    assert bench.desk.asked[0].save == ()


@requirement("S183")
async def test_a_rejected_question_is_not_for_the_model(bench: ToolBench) -> None:
    asker = Asker(bench)

    async def rejected() -> None:
        with pytest.raises(QuestionRejectedError):
            await asker.call(COLOUR)

    async with asyncio.TaskGroup() as group:
        group.create_task(rejected())
        asker.desk.reject((await asker.request()).id)


async def test_where_nobody_watches_the_model_is_told_so(bench: ToolBench) -> None:
    settled = await Asker(bench, headless="deny").call(COLOUR)
    assert settled == ToolError("Nobody is there to answer. Go on without the answers.")


async def test_one_who_may_not_ask_does_not(bench: ToolBench) -> None:
    asker = Asker(bench)
    bench.desk.answers["question"] = PermissionBlockedError("not you")
    assert await asker.call(COLOUR) == ToolError("not you")
    assert not asker.asked.is_set()


@pytest.mark.parametrize(
    "questions",
    [
        [],
        [COLOUR] * (limits.QUESTIONS_PER_REQUEST_MAX + 1),
        [COLOUR | {"options": OPTIONS * limits.QUESTION_OPTIONS_MAX}],
        [COLOUR | {"question": ""}],
        [COLOUR | {"options": [{"label": "", "description": ""}]}],
        [{"question": "Which colour?"}],
        [COLOUR | {"header": "x" * (limits.QUESTION_INPUT_BYTES_MAX + 1)}],
    ],
)
async def test_what_cannot_be_asked_is_explained_and_reaches_nobody(
    bench: ToolBench, questions: list[JsonObject]
) -> None:
    asker = Asker(bench)
    settled = await asker.call(*questions)
    assert isinstance(settled, ToolError)
    assert "Invalid tool input" in settled.message or "larger than" in settled.message
    assert not asker.asked.is_set()
