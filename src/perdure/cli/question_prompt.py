"""Answers questions of the model: asks at the terminal, declines, or leaves them to another client.

Every answer goes through the client, whether the Session runs in this process or on a server. The
model wrote the question, so its parts are cleaned and shown on one line each.
"""

from collections.abc import Awaitable

from perdure.cli import terminal
from perdure.client import DeclaredError, WireClient
from perdure.schema import codec
from perdure.schema.approval.question import Question, QuestionRequest
from perdure.schema.codec import JsonObject


async def answer_at_terminal(event: JsonObject, client: WireClient) -> None:
    """Ask the questions in order. An empty line declines all of them and stops the run."""
    request = codec.convert(QuestionRequest, event["data"])
    answers: list[tuple[str, ...]] = []
    for question in request.questions:
        labels = await _ask(question)
        if not labels:
            await _settle(client.sessions.questions.reject(request.session_id, request.id))
            return
        answers.append(labels)
    await _settle(client.sessions.questions.reply(request.session_id, request.id, answers))


async def refuse(event: JsonObject, client: WireClient) -> None:
    """Decline because there is no terminal to ask at; this stops the run."""
    request = codec.convert(QuestionRequest, event["data"])
    terminal.print_note(
        f"declined to answer {_first_question(request)!r}: there is no terminal to ask at; use"
        " --permission-timeout to let another client answer\n"
    )
    await _settle(client.sessions.questions.reject(request.session_id, request.id))


async def stop(event: JsonObject, client: WireClient) -> None:
    """As `refuse`, which stops the run too."""
    await refuse(event, client)


async def wait_for_other_client(event: JsonObject, client: WireClient) -> None:
    """Wait for another client to answer. The runtime declines at the `--permission-timeout`."""
    request = codec.convert(QuestionRequest, event["data"])
    terminal.print_note(f"waiting for another client to answer {_first_question(request)!r}\n")


def parse_answer(question: Question, typed: str) -> tuple[str, ...] | None:
    """Return the answers that `typed` names by number or in words, or None if it names none."""
    parts = typed.split(",") if question.takes_many else [typed]
    labels = [_label(question, part.strip()) for part in parts if part.strip()]
    named = tuple(dict.fromkeys(label for label in labels if label is not None))
    return named if labels and None not in labels else None


def _first_question(request: QuestionRequest) -> str:
    return terminal.one_line(request.questions[0].question) if request.questions else ""


def _label(question: Question, part: str) -> str | None:
    labels = [option.label for option in question.options]
    if part.isascii() and part.isdigit() and 1 <= int(part) <= len(labels):
        return labels[int(part) - 1]
    return part if question.takes_own_words or part in labels else None


async def _ask(question: Question) -> tuple[str, ...]:
    """Return the answers, or an empty tuple if the user typed nothing."""
    terminal.print_note(f"{terminal.one_line(question.question)}\n")
    for number, option in enumerate(question.options, start=1):
        shown = terminal.one_line(f"{option.label}: {option.description}")
        terminal.print_note(f"  {number}. {shown}\n")
    while typed := await terminal.ask(_hint(question)):
        labels = parse_answer(question, typed)
        if labels is not None:
            return labels
        terminal.print_note("That is not one of the options. Type a number from the list.\n")
    return ()


def _hint(question: Question) -> str:
    numbers = "Numbers, with commas" if question.takes_many else "A number"
    own = ", or your own words" if question.takes_own_words else ""
    return f"{numbers}{own}; empty declines: "


async def _settle(call: Awaitable[None]) -> None:
    try:
        await call
    except DeclaredError as error:
        if error.tag != "QuestionNotFoundError":
            raise
        terminal.print_note("The question was already answered by another client, or it expired.\n")
