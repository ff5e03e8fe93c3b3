"""Asking a Session: answers, failures, requests to the program, events and structured results."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypedDict, cast

import msgspec
import pydantic
import pytest

import perdure
from perdure import (
    AssistantMessage,
    Host,
    PermissionRequest,
    QuestionRequest,
    Refusal,
    ToolPart,
)
from perdure.client.conversation.output import ATTEMPTS
from perdure.client.conversation.result import Result
from perdure.embedded.host import HostOptions, HostScope, make_settings
from perdure.llm.error import LLMError
from perdure.schema import codec
from perdure.schema.approval.question import Answers
from perdure.schema.live_event import TextDelta
from perdure.schema.session import event as events
from perdure.testing import ScriptedModel, failure, pause, text, texts_of, tool_call
from tests.contract.client.gate import gate
from tests.contract.client.hosts import PATIENCE_SECONDS, project, served

MODEL: Final = "mine/first"
COMMAND: Final = tool_call("bash", {"command": "python3 -c 'print(6 * 7)'"})
QUESTION: Final = tool_call(
    "question",
    {
        "questions": [
            {
                "question": "Which one?",
                "header": "Which",
                "options": [{"label": "this", "description": "the first"}],
            }
        ]
    },
)


def opened(root: Path, model: ScriptedModel) -> HostScope[Host]:
    return perdure.open(asking(root), data_dir=str(root / "data"), models={MODEL: model})


def asking(root: Path) -> str:
    """A project whose commands need a permission."""
    directory = project(root)
    (directory / "opencode.json").write_text('{"permission": {"bash": "ask"}}', encoding="utf-8")
    return str(directory)


def results(answer: Result[object]) -> str:
    """What the tools gave, as it is stored."""
    parts = (
        part
        for message in answer.messages
        if isinstance(message, AssistantMessage)
        for part in message.content
    )
    states = [part.state for part in parts if isinstance(part, ToolPart)]
    return codec.encode(states).decode()


async def test_an_answer_is_its_text_and_knows_its_messages_and_cost(tmp_path: Path) -> None:
    model = ScriptedModel().turn(tool_call("read", {"path": "one.txt"})).turn(text("It says one."))
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, model) as host:
        answer = await host.ask("what is in one.txt?", model=MODEL)
        assert str(answer) == answer.text == "It says one."
        kinds = [type(message).__name__ for message in answer.messages]
        assert kinds == ["UserMessage", "AssistantMessage", "AssistantMessage"]
        assert answer.cost == 0
        model.turn(text("Yes."))
        again = await answer.session.ask("sure?")
        assert (again.text, again.session.id) == ("Yes.", answer.session.id)
        assert [type(message).__name__ for message in again.messages] == [
            "UserMessage",
            "AssistantMessage",
        ]
        assert len(await answer.session.messages()) == 5


async def test_a_failure_is_raised_with_what_was_said(tmp_path: Path) -> None:
    model = ScriptedModel().turn(failure(LLMError("authentication", "The key is wrong")))
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, model) as host:
        with pytest.raises(perdure.AnswerError, match="The key is wrong") as raised:
            await host.ask("hello", model=MODEL)
        assert len(raised.value.answer.messages) == 2
        with pytest.raises(perdure.AnswerError, match="nobody/knows"):
            await host.ask("hello", model="nobody/knows")


async def test_without_a_handler_a_permission_is_refused_and_the_model_told(
    tmp_path: Path,
) -> None:
    model = ScriptedModel().turn(COMMAND).turn(text("Then not."))
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, model) as host:
        answer = await host.ask("compute", model=MODEL)
        assert answer.text == "Then not."
        assert "cannot be asked" in str(answer.messages)


async def test_a_handler_decides_about_permissions(tmp_path: Path) -> None:
    asked: list[PermissionRequest] = []

    async def allow(request: PermissionRequest) -> perdure.PermissionReply:
        asked.append(request)
        return "once"

    def refuse(request: PermissionRequest) -> Refusal:
        return Refusal(f"not {request.action}")

    model = ScriptedModel().turn(COMMAND).turn(text("42"))
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, model) as host:
        session = await host.session(model=MODEL)
        answer = await session.ask("compute", on_permission=allow)
        assert "42\\n" in str(answer.messages)
        assert [request.action for request in asked] == ["bash"]
        model.turn(COMMAND).turn(text("No?"))
        refused = await session.ask("again", on_permission=refuse)
        assert (refused.text, "not bash" in str(refused.messages)) == ("No?", True)


async def test_an_error_of_a_handler_comes_out_and_leaves_nothing_waiting(tmp_path: Path) -> None:
    def fail(request: PermissionRequest) -> perdure.PermissionReply:
        raise ZeroDivisionError

    model = ScriptedModel().turn(COMMAND)
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, model) as host:
        session = await host.session(model=MODEL)
        with pytest.raises(ZeroDivisionError):
            await session.ask("compute", on_permission=fail)
        await host.sessions.wait(session.id)
        assert await host.sessions.permissions.list(session.id) == ()


async def test_questions_go_to_their_handler_or_back_to_the_model(tmp_path: Path) -> None:
    async def choose(request: QuestionRequest) -> Answers:
        return tuple((question.options[0].label,) for question in request.questions)

    model = ScriptedModel().turn(QUESTION).turn(text("this it is"))
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, model) as host:
        session = await host.session(model=MODEL)
        chosen = await session.ask("ask me", on_question=choose)
        assert chosen.text == "this it is"
        assert "this" in results(chosen)
        model.turn(QUESTION).turn(text("I decided."))
        left = await session.ask("ask me")
        assert left.text == "I decided."
        assert "Decide by yourself" in results(left)


async def test_a_stream_has_every_event_of_the_work_in_order_and_ends(tmp_path: Path) -> None:
    model = ScriptedModel().turn(COMMAND).turn(text("four two"))
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, model) as host:
        session = await host.session(model=MODEL)
        said = ""
        seqs: list[int] = []
        kinds: list[type] = []
        async for event in session.stream("compute", on_permission=lambda _: "once"):
            kinds.append(type(event.data))
            if event.durable is not None:
                seqs.append(event.durable.seq)
            if isinstance(event.data, TextDelta):
                said += event.data.delta
        assert said == "four two"
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
        assert events.PromptAdmitted in kinds
        assert kinds.count(events.StepEnded) == 2
        log = await host.sessions.history(session.id)
        assert seqs[-1] == log.items[-1].durable.seq


async def test_leaving_a_stream_does_not_end_the_work(tmp_path: Path) -> None:
    hold = pause()
    model = ScriptedModel().turn(text("slow", hold=hold))
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, model) as host:
        session = await host.session(model=MODEL)
        async with aclosing(session.stream("go")) as stream:
            async for event in stream:
                if isinstance(event.data, events.StepStarted):
                    break
        hold.release()
        rest = [event async for event in session.stream()]
        await host.sessions.wait(session.id)
        assert rest or (await session.messages())[-1]
        assert "slow" in str((await session.messages())[-1])


class Total(msgspec.Struct):
    total: int


@dataclass
class DataTotal:
    total: int


class DictTotal(TypedDict):
    total: int


class ModelTotal(pydantic.BaseModel):
    total: int


@pytest.mark.parametrize("kind", [Total, DataTotal, DictTotal, ModelTotal])
@pytest.mark.parametrize(
    "said",
    [
        '{"total": 42}',
        'Here it is:\n```json\n{"total": 42}\n```\nDone.',
        'The result is {"total": 42}.',
    ],
)
async def test_a_structured_result_is_a_value_of_its_type(
    tmp_path: Path, kind: type[Total], said: str
) -> None:
    model = ScriptedModel().turn(text(said))
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, model) as host:
        answer = await host.ask("add them", model=MODEL, output=kind)
        assert msgspec.to_builtins(answer.output, builtin_types=(ModelTotal,)) in (
            {"total": 42},
            ModelTotal(total=42),
        )
        assert '"total"' in texts_of(model.requests[0])[-1]


async def test_a_result_that_does_not_fit_is_asked_for_again(tmp_path: Path) -> None:
    model = ScriptedModel().turn(text("forty-two")).turn(text('{"total": "many"}'))
    model.turn(text('{"total": 42}'))
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, model) as host:
        answer = await host.ask("add them", model=MODEL, output=Total)
        assert answer.output == Total(42)
        assert "Expected `int`" in texts_of(model.requests[-1])[-1]
        for _ in range(ATTEMPTS):
            model.turn(text("never"))
        with pytest.raises(perdure.AnswerError, match="fits"):
            await answer.session.ask("again", output=Total)


async def test_the_program_adds_tools_context_and_providers(tmp_path: Path) -> None:
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    model = ScriptedModel().turn(tool_call("double", {"number": 21})).turn(text("42"))
    host_scope = perdure.open(
        str(project(tmp_path)),
        data_dir=str(tmp_path / "data"),
        models={MODEL: model},
        tools=[double],
        system="Answer in numbers.",
        providers={"acme": {"models": {"large": {}}}},
        on_permission=lambda _: "once",
    )
    async with asyncio.timeout(PATIENCE_SECONDS), host_scope as host:
        answer = await host.ask("21 twice", model=MODEL)
        assert answer.text == "42"
        assert "Answer in numbers." in "\n".join(model.requests[0].system)
        assert "42" in results(answer)
        assert "acme" in {provider.id for provider in await host.providers.list()}


async def test_an_answer_that_is_no_reply_is_named_and_leaves_nothing_waiting(
    tmp_path: Path,
) -> None:
    def decide(_: PermissionRequest) -> Refusal:
        return cast("Refusal", True)

    model = ScriptedModel().turn(COMMAND)
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, model) as host:
        session = await host.session(model=MODEL)
        with pytest.raises(TypeError, match="on_permission returned True; it returns 'once'"):
            await session.ask("compute", on_permission=decide)
        await host.sessions.wait(session.id)
        assert await host.sessions.permissions.list(session.id) == ()


async def test_a_host_that_is_not_open_says_how_it_is_opened(tmp_path: Path) -> None:
    scope = perdure.open(str(tmp_path), data_dir=str(tmp_path / "data"))
    with pytest.raises(TypeError, match="write `async with perdure"), cast("Any", scope):
        pass
    with pytest.raises(AttributeError, match="the host is not open, so it has no 'ask' yet"):
        await cast("Any", scope).ask("hello")


@pytest.mark.filterwarnings("error")
async def test_a_host_that_was_closed_says_so(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with opened(tmp_path, ScriptedModel().turn(text("one"))) as host:
            session = (await host.ask("first", model=MODEL)).session
        with pytest.raises(RuntimeError, match="the host is closed"):
            await session.ask("second")


async def test_the_blocking_form_says_what_to_write_where_a_loop_runs(tmp_path: Path) -> None:
    host = perdure.open_blocking(str(tmp_path), data_dir=str(tmp_path / "data"))
    with pytest.raises(RuntimeError, match=r"as in a notebook; write `async with perdure"), host:
        pass


async def test_a_server_that_does_not_answer_is_named() -> None:
    async with perdure.connect("http://127.0.0.1:9") as client:
        with pytest.raises(perdure.ClientError, match=r"no connection to http://127\.0\.0\.1:9: "):
            await client.ask("hello", model=MODEL)


def test_an_unknown_option_is_an_error() -> None:
    options = cast("HostOptions", {"sytem": "Be brief."})
    with pytest.raises(TypeError, match="did you mean 'system'"):
        make_settings(".", options)


async def test_a_server_is_asked_in_the_same_way(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        served(tmp_path) as url,
        perdure.connect(url, on_permission=lambda _: "once") as client,
    ):
        answer = await client.ask("show me a permission request", model="demo/demo")
        assert answer.text
        session = await client.session(answer.session.id)
        told = [event.type async for event in session.stream("list the files here")]
        assert told.count("session.next.step.ended") >= 1


async def test_lost_connections_lose_no_answer_and_no_event(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        served(tmp_path) as url,
        gate() as (between, through),
        perdure.connect(through) as client,
    ):
        between.upstream = int(url.rpartition(":")[2])
        session = await client.session(model="demo/demo")
        asked = asyncio.create_task(session.ask("run `sleep 1; echo slept`"))
        async for event in perdure.resume_events(client, session.id):
            if isinstance(event.data, events.ToolCalled):
                between.cut()
                break
        assert "slept" in results(await asked)
        seqs: list[int] = []
        async for told in session.stream("run `sleep 1; echo again`"):
            if told.durable is not None:
                seqs.append(told.durable.seq)
            if isinstance(told.data, events.ToolCalled):
                between.cut()
        log = (await client.sessions.history(session.id)).items
        assert seqs == [item.durable.seq for item in log if item.durable.seq >= seqs[0]]
        prompts = [item for item in log if isinstance(item.data, events.PromptAdmitted)]
        assert len(prompts) == 2


def test_blocking_calls_do_the_same(tmp_path: Path) -> None:
    model = ScriptedModel().turn(COMMAND).turn(text('{"total": 42}')).turn(text("streamed"))
    with perdure.open_blocking(
        asking(tmp_path),
        data_dir=str(tmp_path / "data"),
        models={MODEL: model},
        on_permission=lambda _: "once",
    ) as host:
        answer = host.ask("compute", model=MODEL, output=Total)
        assert answer.output == Total(42)
        said = [
            event.data.delta
            for event in answer.session.stream("more")
            if isinstance(event.data, TextDelta)
        ]
        assert "".join(said) == "streamed"
        model.turn(text("bye"))
        assert str(answer.session.ask("and?")) == "bye"
