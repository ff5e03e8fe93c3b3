"""The conversation of the sweep: what the person says, and what the model answers.

Everything has fixed ids, and the model sees nothing but its request. After a crash the same script
is run from its start: what was done before is recognised, the rest is done.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from perdure.core import limits
from perdure.core.session import recovery
from perdure.llm.error import LLMError
from perdure.llm.event import LLMEvent
from perdure.llm.message import LLMMessage, TextPart, ToolResultPart
from perdure.llm.request import LLMRequest
from perdure.net import sse
from perdure.runtime.app.runtime import Runtime
from perdure.schema import codec
from perdure.schema.approval.pending import PermissionWord
from perdure.schema.ids import MessageID, PermissionID, SessionID
from perdure.schema.models.model import ModelRef
from perdure.schema.session.prompt import Delivery, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.testing import Pause, ScriptedModel, reasoning, text, tool_call
from perdure.testing.scripted_model import Failure, Step
from tests.harness.crash.points import CrashPoints

SESSION: Final = SessionID("ses_crash")
MODEL_FIRST: Final = ModelRef(id="one", provider_id="crash")
MODEL_SECOND: Final = ModelRef(id="two", provider_id="crash")
NOTES: Final = ("a", "b", "c")
GRANTED_FILE: Final = "granted.txt"
GRANTED_TEXT: Final = "with permission\n"
WRITE_CALL: Final = "call_write"
SUMMARY: Final = "what was said"
ASKED: Final = "permission.v2.asked"


@dataclass(frozen=True, slots=True)
class Line:
    """Something the person says."""

    id: MessageID
    text: str
    delivery: Delivery = "steer"


HELLO: Final = Line(MessageID("msg_hello"), "hello")
NOTE: Final = Line(MessageID("msg_note"), "note three things at once")
WRITE: Final = Line(MessageID("msg_write"), "write a file that needs permission")
THINK: Final = Line(MessageID("msg_think"), "think until you are steered")
HURRY: Final = Line(MessageID("msg_hurry"), "hurry up")
LATER: Final = Line(MessageID("msg_later"), "later look again", delivery="queue")
# Longer than what a compaction keeps as it is.
AGAIN: Final = Line(MessageID("msg_again"), "again as another agent " + "lorem ipsum " * 3_500)
# The model refuses it until room was made for it.
FULL: Final = Line(MessageID("msg_full"), "full of words " + "dolor sit amet " * 400)
ROOM_MADE: Final = "there is room again"
GOODBYE: Final = Line(MessageID("msg_goodbye"), "goodbye")
LINES: Final = (HELLO, NOTE, WRITE, THINK, HURRY, LATER, AGAIN, FULL, GOODBYE)


class Model:
    """Implements llm.model_call.ModelCall. `held` is where the answer to THINK waits.

    `asked` hears of every request of a turn that is answered, and what it is about.
    """

    def __init__(self, asked: Callable[[str], None]) -> None:
        self.held = Pause()
        self._asked = asked

    def __call__(self, request: LLMRequest) -> AsyncIterator[tuple[LLMEvent, ...]]:
        answer = self._answer(request)
        if request.tools and not isinstance(answer[0], Failure):
            self._asked(sha256(codec.encode(request.segments)).hexdigest())
        return ScriptedModel().turn(*answer)(request)

    def _answer(self, request: LLMRequest) -> tuple[Step, ...]:
        if not request.tools:
            return (text(SUMMARY),)
        messages = [
            m for segment in request.segments for m in segment.messages if m.role != "system"
        ]
        # What it is asked for again is what was said before its last answer.
        messages = _before_the_cut(messages)
        last = messages[-1]
        if last.role == "tool":
            return (text("done with tools"),)
        said = _text(last)
        if FULL.text in said and last.role == "user" and not said.startswith(FULL.text):
            return (text(ROOM_MADE),)
        match said.partition(" ")[0]:
            case "full":
                return (Failure(LLMError("overflow", "too many tokens")),)
            case "note":
                return tuple(tool_call("note", {"line": n}, id=f"call_{n}") for n in NOTES)
            case "write":
                asked = {"path": GRANTED_FILE, "content": GRANTED_TEXT}
                return (reasoning("may I"), tool_call("write", asked, id=WRITE_CALL))
            case "think":
                return (text("let me think", hold=self.held),)
            case word:
                return (text(f"you said {word}"),)


def _before_the_cut(messages: list[LLMMessage]) -> list[LLMMessage]:
    """Without the last answer, if that is the one that was cut, and without those cut before it."""
    while _text(messages[-1]) == recovery.GO_ON:
        messages = _without_cut_answer(messages[:-1])
    return messages


def _without_cut_answer(messages: list[LLMMessage]) -> list[LLMMessage]:
    roles = [message.role for message in messages]
    last = len(roles) - 1 - roles[::-1].index("assistant") if "assistant" in roles else len(roles)
    after = messages[last + 1 :]
    cut = all(_is_interrupted(message) for message in after)
    return messages[:last] if cut and last < len(roles) else messages


def _is_interrupted(message: LLMMessage) -> bool:
    results = [part.result.value for part in message.content if isinstance(part, ToolResultPart)]
    return results == [recovery.INTERRUPTED]


def _text(message: LLMMessage) -> str:
    return "".join(part.text for part in message.content if isinstance(part, TextPart))


class Person:
    """The person who talks to the Session. A receipt counts once `acknowledge` has it."""

    def __init__(
        self,
        runtime: Runtime,
        held: Pause,
        points: CrashPoints,
        acknowledge: Callable[[AdmittedPrompt], None],
        decides: Callable[[], None],
        *,
        names: str = "",
    ) -> None:
        """With `names` the Session and what is said in it are called differently."""
        self._runtime = runtime
        self._sessions = runtime.sessions
        self._session = SessionID(SESSION + names)
        self._names = names
        self._held = held
        self._points = points
        self._acknowledge = acknowledge
        self._decides = decides

    async def run(self) -> None:
        """Run the whole script, with a steering prompt and a granted permission."""
        async with asyncio.TaskGroup() as group:
            aside = [group.create_task(self._interject()), group.create_task(self._grant())]
            await self._talk()
            for task in aside:
                task.cancel()

    async def _talk(self) -> None:
        await self._sessions.create(id=self._session, model=MODEL_FIRST)
        self._points.reach("client/created")
        await self._ask(HELLO)
        await self._ask(NOTE)
        await self._ask(WRITE)
        await self._ask(THINK)
        # The same words as in the interjection: the same admissions.
        await self._ask(HURRY)
        await self._ask(LATER)
        await self._sessions.switch_model(self._session, MODEL_SECOND)
        await self._sessions.switch_agent(self._session, "plan")
        self._points.reach("client/switched")
        await self._runtime.changes.exclude(
            self._session, MessageID(HELLO.id + self._names), excluded=True
        )
        self._points.reach("client/excluded")
        await self._ask(AGAIN)
        await self._compact()
        await self._ask(FULL)
        await self._ask(GOODBYE)

    async def _ask(self, line: Line) -> None:
        await self._say(line)
        await self._sessions.wait(self._session)
        await self._decide()

    async def _decide(self) -> None:
        """Give up what was to be noted, and have everything else sent again."""
        if (await self._runtime.recovery.load_recovery(self._session)).waiting:
            said = [codec.decode_any(m) for m in await self._sessions.context(self._session)]
            latest = [message["id"] for message in said if message["type"] == "user"][-1:]
            if latest == [NOTE.id]:
                await self._runtime.recovery.decide(self._session, "abandon")
            else:
                self._decides()
                await self._runtime.recovery.decide(self._session, "retry")
            self._points.reach("client/decided")
            await self._sessions.wait(self._session)

    async def _say(self, line: Line) -> None:
        receipt = await self._sessions.prompt(
            self._session,
            PromptInput(text=line.text),
            id=MessageID(line.id + self._names),
            delivery=line.delivery,
        )
        self._acknowledge(receipt)
        self._points.reach(f"client/acknowledged[{line.id}]")

    async def _interject(self) -> None:
        await self._held.reached.wait()
        await self._say(HURRY)
        await self._say(LATER)
        self._held.release()

    async def _compact(self) -> None:
        """Once: a compaction has no id by which a second one would be recognised."""
        shown = await self._sessions.context(self._session)
        if not any(codec.decode_any(message)["type"] == "compaction" for message in shown):
            await self._sessions.compact(self._session)
            self._points.reach("client/compacted")

    async def _grant(self) -> None:
        frames = sse.Reader(bytes_max=limits.LIVE_RING_BYTES_MAX)
        with self._runtime.hub.subscribe() as reader:
            while (chunk := await reader.next()) is not None:
                # Whole frames, most of them deltas: who asks for nothing need not be understood.
                if ASKED.encode() not in chunk:
                    continue
                for frame in frames.feed(chunk):
                    event = codec.decode_any(frame.data)
                    if event["type"] == ASKED:
                        await self._reply(PermissionID(event["data"]["id"]))

    async def _reply(self, request: PermissionID) -> None:
        self._points.reach("permission/asked")
        word = PermissionWord(reply="always")
        await self._runtime.permissions.reply(self._session, request, word)
        self._points.reach("permission/replied")
