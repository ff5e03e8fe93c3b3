"""The Questioner: who waits, what is an answer, and who hears of it."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from perdure.core import limits
from perdure.location.approval.questions import LocationQuestions
from perdure.ports import QuestionAsk, QuestionBlockedError, QuestionRejectedError
from perdure.schema.approval.permission import Headless
from perdure.schema.approval.question import (
    Answers,
    Question,
    QuestionOption,
    QuestionRequest,
    QuestionSource,
)
from perdure.schema.errors import InvalidRequestError, QuestionNotFoundError
from perdure.schema.ids import MessageID, QuestionID, SessionID, ToolCallID
from perdure.schema.live_event import LiveEvent, QuestionRejected, QuestionReplied
from perdure.testing import SeededIds
from tests.requirements import requirement

ONE, TWO = SessionID("ses_one"), SessionID("ses_two")
RED, BLUE = QuestionOption("red", "warm"), QuestionOption("blue", "cold")
COLOUR = Question("Which colour?", "Colour", (RED, BLUE))
COLOURS = Question("Which colours?", "Colours", (RED, BLUE), multiple=True)
STRICT = Question("Red or blue?", "Strict", (RED, BLUE), custom=False)


def ask(*questions: Question, session: SessionID = ONE) -> QuestionAsk:
    source = QuestionSource(message_id=MessageID("msg_1"), call_id=ToolCallID("call_1"))
    return QuestionAsk(session_id=session, questions=questions or (COLOUR,), tool=source)


class Desk:
    """A desk with a record of what it announced."""

    def __init__(
        self, *, headless: Headless = "wait", reply_timeout_seconds: float | None = None
    ) -> None:
        self.events: list[LiveEvent] = []
        self.announced = asyncio.Event()
        self.questions = LocationQuestions(
            ids=SeededIds(),
            publish=self._publish,
            headless=headless,
            reply_timeout_seconds=reply_timeout_seconds,
        )

    def _publish(self, event: LiveEvent) -> None:
        self.events.append(event)
        self.announced.set()

    async def outcome(self, wanted: QuestionAsk) -> Answers | str:
        """How a call that asks this goes on."""
        try:
            return await self.questions.ask(wanted)
        except QuestionRejectedError:
            return "rejected"
        except QuestionBlockedError as error:
            return f"blocked: {error}"

    async def pending(
        self, group: asyncio.TaskGroup, wanted: QuestionAsk
    ) -> tuple[asyncio.Task[Answers | str], QuestionID]:
        """A call that waits now."""
        self.announced.clear()
        task = group.create_task(self.outcome(wanted))
        await self.announced.wait()
        return task, self.questions.list()[-1].id


@pytest.fixture
async def group() -> AsyncGenerator[asyncio.TaskGroup]:
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        yield tasks


@pytest.fixture
def desk() -> Desk:
    return Desk()


@requirement("S183", "S185")
async def test_a_call_waits_until_its_questions_are_answered(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    task, request_id = await desk.pending(group, ask(COLOUR, COLOURS))
    (request,) = desk.questions.list()
    assert desk.events == [request]
    assert (request.session_id, request.questions) == (ONE, (COLOUR, COLOURS))
    assert request_id.startswith("que_")
    assert not task.done()
    desk.questions.reply(request_id, (("blue",), ("red", "blue")))
    # Announced, and gone from the list, before the one who asked goes on.
    assert isinstance(desk.events[-1], QuestionReplied)
    assert not task.done()
    assert desk.questions.list() == ()
    assert await task == (("blue",), ("red", "blue"))


@requirement("S185")
async def test_rejecting_stops_the_one_who_asked_and_nobody_else(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    first, first_id = await desk.pending(group, ask())
    second, second_id = await desk.pending(group, ask())
    desk.questions.reject(first_id)
    assert desk.events[-1] == QuestionRejected(session_id=ONE, request_id=first_id)
    assert await first == "rejected"
    assert [request.id for request in desk.questions.list()] == [second_id]
    desk.questions.reply(second_id, ((),))
    assert await second == ((),)


@requirement("S185")
async def test_a_request_is_settled_once(desk: Desk, group: asyncio.TaskGroup) -> None:
    task, request_id = await desk.pending(group, ask())
    desk.questions.reply(request_id, (("red",),))
    with pytest.raises(QuestionNotFoundError):
        desk.questions.reply(request_id, (("blue",),))
    with pytest.raises(QuestionNotFoundError):
        desk.questions.reject(request_id)
    assert await task == (("red",),)
    assert len(desk.events) == 2


@pytest.mark.parametrize(
    ("question", "given", "reason"),
    [
        (COLOUR, (), "Expected 1 lists of answers, got 0"),
        (COLOUR, (("red",), ("blue",)), "Expected 1 lists of answers, got 2"),
        (COLOUR, (("red", "blue"),), "Expected one answer, got 2"),
        (COLOUR, ((" \n",),), "An answer cannot be blank"),
        (COLOURS, (("red", "red"),), "Each answer can be given once"),
        (STRICT, (("green",),), "Expected labels among the options"),
        (STRICT, (("Red",),), "Expected labels among the options"),
        (COLOUR, (("x" * (limits.QUESTION_ANSWERS_BYTES_MAX + 1),),), "larger than"),
    ],
)
async def test_answers_that_do_not_fit_are_refused_and_the_question_still_waits(
    desk: Desk, group: asyncio.TaskGroup, question: Question, given: Answers, reason: str
) -> None:
    task, request_id = await desk.pending(group, ask(question))
    with pytest.raises(InvalidRequestError, match=reason) as refused:
        desk.questions.reply(request_id, given)
    assert refused.value.kind == "Payload"
    assert len(desk.events) == 1
    desk.questions.reply(request_id, (("red",),))
    assert await task == (("red",),)


@pytest.mark.parametrize(
    ("question", "given"),
    [
        (COLOUR, ("a dark green",)),
        (COLOUR, ()),
        (COLOURS, ("red", "and my own")),
        (STRICT, ("blue",)),
        (STRICT, ()),
    ],
)
async def test_answers_that_fit_are_passed_on_as_they_are(
    desk: Desk, group: asyncio.TaskGroup, question: Question, given: tuple[str, ...]
) -> None:
    task, request_id = await desk.pending(group, ask(question))
    desk.questions.reply(request_id, (given,))
    assert await task == (given,)


async def test_requests_are_listed_by_session_in_their_order(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    for session in (ONE, TWO, ONE):
        await desk.pending(group, ask(session=session))
    assert [request.session_id for request in desk.questions.list()] == [ONE, TWO, ONE]
    assert [request.session_id for request in desk.questions.list(TWO)] == [TWO]
    desk.questions.close()


async def test_whoever_stops_waiting_takes_the_question_along(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    task, request_id = await desk.pending(group, ask())
    assert desk.questions.waiting
    task.cancel()
    await asyncio.wait([task])
    assert not desk.questions.waiting
    with pytest.raises(QuestionNotFoundError):
        desk.questions.reply(request_id, ())


@requirement("S185")
async def test_closing_the_location_rejects_everything(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    waiting = [await desk.pending(group, ask(session=session)) for session in (ONE, TWO)]
    desk.questions.close()
    assert [await task for task, _ in waiting] == ["rejected", "rejected"]
    assert sum(isinstance(event, QuestionRejected) for event in desk.events) == 2


async def test_another_location_cannot_settle_it(desk: Desk, group: asyncio.TaskGroup) -> None:
    _, request_id = await desk.pending(group, ask())
    with pytest.raises(QuestionNotFoundError):
        Desk().questions.reply(request_id, (("red",),))
    desk.questions.close()


async def test_where_nobody_watches_asking_is_a_clear_refusal() -> None:
    desk = Desk(headless="deny")
    assert await desk.outcome(ask()) == (
        "blocked: Nobody is there to answer. Go on without the answers."
    )
    assert desk.events == []


async def test_a_flood_of_questions_is_refused_and_those_before_it_wait(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    for _ in range(limits.QUESTIONS_PENDING_MAX):
        await desk.pending(group, ask())
    assert str(await desk.outcome(ask())).startswith("blocked: Too many questions")
    assert len(desk.questions.list()) == limits.QUESTIONS_PENDING_MAX
    assert all(isinstance(event, QuestionRequest) for event in desk.events)
    desk.questions.close()


async def test_a_person_is_waited_for_only_so_long() -> None:
    desk = Desk(reply_timeout_seconds=0.01)
    said = await desk.outcome(ask())
    assert said == "blocked: Nobody answered in time. Go on without the answers."
    assert isinstance(desk.events[-1], QuestionRejected)
    assert desk.questions.list() == ()


async def test_an_interrupted_question_is_taken_from_everybody_s_screen(
    desk: Desk, group: asyncio.TaskGroup
) -> None:
    task, request_id = await desk.pending(group, ask())
    task.cancel()
    await asyncio.wait([task])
    assert desk.events[-1] == QuestionRejected(session_id=ONE, request_id=request_id)
    assert desk.questions.list() == ()
