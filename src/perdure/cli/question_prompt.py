"""Questions on the command line: numbered options at the terminal, or a refusal that says why.

Both are settled through the client, whether the Session runs here or on a server. What is asked
was written by a model; it is shown cleaned, a line for each part.
"""

from collections.abc import Awaitable

from perdure.cli import terminal
from perdure.client import DeclaredError, WireClient
from perdure.schema import codec
from perdure.schema.approval.question import Question, QuestionRequest
from perdure.schema.codec import JsonObject


async def answer_at_terminal(event: JsonObject, client: WireClient) -> None:
    """Ask one question after the other. An empty line declines them all and stops the run."""
    request = codec.convert(QuestionRequest, event["data"])
    answers: list[tuple[str, ...]] = []
    for question in request.questions:
        labels = await _ask(question)
        if not labels:
            await _settled(client.sessions.questions.reject(request.session_id, request.id))
            return
        answers.append(labels)
    await _settled(client.sessions.questions.reply(request.session_id, request.id, answers))


async def refuse(event: JsonObject, client: WireClient) -> None:
    """Nobody here can be asked: stop the run, rather than leave it waiting."""
    request = codec.convert(QuestionRequest, event["data"])
    asked = terminal.one_line(request.questions[0].question) if request.questions else ""
    terminal.note(f"refused to answer {asked!r}: nobody is there to be asked\n")
    await _settled(client.sessions.questions.reject(request.session_id, request.id))


async def leave_to_others(event: JsonObject, client: WireClient) -> None:
    """Somebody else may answer, until the time for it is over."""
    request = codec.convert(QuestionRequest, event["data"])
    asked = terminal.one_line(request.questions[0].question) if request.questions else ""
    terminal.note(f"waiting for somebody to answer {asked!r}\n")


def chosen(question: Question, typed: str) -> tuple[str, ...] | None:
    """The answers that `typed` names by number or in words; None when it is no answer."""
    parts = typed.split(",") if question.takes_many else [typed]
    labels = [_label(question, part.strip()) for part in parts if part.strip()]
    named = tuple(dict.fromkeys(label for label in labels if label is not None))
    return named if labels and None not in labels else None


def _label(question: Question, part: str) -> str | None:
    labels = [option.label for option in question.options]
    if part.isascii() and part.isdigit() and 1 <= int(part) <= len(labels):
        return labels[int(part) - 1]
    return part if question.takes_own_words or part in labels else None


async def _ask(question: Question) -> tuple[str, ...]:
    """The answers; none when the person typed nothing."""
    terminal.note(f"{terminal.one_line(question.question)}\n")
    for number, option in enumerate(question.options, start=1):
        shown = terminal.one_line(f"{option.label}: {option.description}")
        terminal.note(f"  {number}. {shown}\n")
    while typed := await terminal.ask(_invitation(question)):
        labels = chosen(question, typed)
        if labels is not None:
            return labels
        terminal.note("That is none of the options.\n")
    return ()


def _invitation(question: Question) -> str:
    numbers = "Numbers, with commas" if question.takes_many else "A number"
    own = ", or your own words" if question.takes_own_words else ""
    return f"{numbers}{own}; empty declines: "


async def _settled(settling: Awaitable[None]) -> None:
    try:
        await settling
    except DeclaredError as error:
        if error.tag != "QuestionNotFoundError":
            raise
        terminal.note("It is settled already.\n")
