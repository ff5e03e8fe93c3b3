"""question: ask the user and wait for the answers."""

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from perdure.core import limits
from perdure.ports import QuestionAsk, QuestionBlockedError, Questioner
from perdure.schema import codec
from perdure.schema.approval.question import Answers, Question, QuestionOption, QuestionSource
from perdure.schema.codec import Record
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
from perdure.tools.environment import ToolEnvironment

DESCRIPTION: Final = """\
Ask the person one or more questions and wait for the answers.

- Ask when a decision is theirs to make, not for what you can find out yourself.
- Each question offers options; the person may also answer in their own words, so offer no "other".
- Put the option you recommend first.
- Answers come back in the order of the questions. A question may be left unanswered."""


class OptionInput(Record, frozen=True):
    label: Annotated[str, Meta(description="The answer, in one to five words.", min_length=1)]
    description: Annotated[str, Meta(description="What choosing it means.")]


class QuestionPrompt(Record, frozen=True):
    question: Annotated[str, Meta(description="The complete question.", min_length=1)]
    header: Annotated[str, Meta(description="A very short title for it.")]
    options: Annotated[
        tuple[OptionInput, ...],
        Meta(description="The answers to choose from.", max_length=limits.QUESTION_OPTIONS_MAX),
    ]
    multiple: Annotated[
        bool | UnsetType, Meta(description="Whether several options may be chosen.")
    ] = UNSET


class QuestionInput(Record, frozen=True):
    questions: Annotated[
        tuple[QuestionPrompt, ...],
        Meta(
            description="The questions, in the order to ask them.",
            min_length=1,
            max_length=limits.QUESTIONS_PER_REQUEST_MAX,
        ),
    ]


class Exchange(Record, frozen=True):
    question: str
    answers: tuple[str, ...]


class QuestionOutput(Record, frozen=True):
    exchanges: tuple[Exchange, ...]


class AnswersOutput(Record, frozen=True):
    answers: Answers


def make_question(
    environment: ToolEnvironment, questioner: Questioner
) -> Tool[QuestionInput, QuestionOutput]:
    async def execute(input: QuestionInput, context: ToolCallContext) -> QuestionOutput:
        if len(codec.encode(input)) > limits.QUESTION_INPUT_BYTES_MAX:
            most = limits.QUESTION_INPUT_BYTES_MAX
            raise ToolFailure(f"The questions are larger than {most} bytes")
        await environment.require(context, "question", ("*",), save=())
        try:
            answers = await questioner.ask(_ask(input, context))
        except QuestionBlockedError as error:
            raise ToolFailure(str(error)) from error
        questions = (prompt.question for prompt in input.questions)
        return QuestionOutput(
            tuple(
                Exchange(question, given)
                for question, given in zip(questions, answers, strict=True)
            )
        )

    return Tool(
        name="question",
        effect="pure",
        asks_first=True,
        description=DESCRIPTION,
        input=QuestionInput,
        output=QuestionOutput,
        execute=execute,
        to_model_output=_content,
        structured=_structured,
    )


def _ask(input: QuestionInput, context: ToolCallContext) -> QuestionAsk:
    return QuestionAsk(
        session_id=context.session_id,
        questions=tuple(_question(prompt) for prompt in input.questions),
        tool=QuestionSource(message_id=context.assistant_message_id, call_id=context.call_id),
    )


def _question(prompt: QuestionPrompt) -> Question:
    options = (QuestionOption(label=o.label, description=o.description) for o in prompt.options)
    return Question(
        question=prompt.question,
        header=prompt.header,
        options=tuple(options),
        multiple=prompt.multiple,
    )


def _content(output: QuestionOutput) -> tuple[ToolContent, ...]:
    lines = (f'"{item.question}" = {_format_answers(item.answers)}' for item in output.exchanges)
    return (TextContent(text="\n".join(("The person answered:", *lines))),)


def _format_answers(answers: tuple[str, ...]) -> str:
    return ", ".join(f'"{answer}"' for answer in answers) or "(unanswered)"


def _structured(output: QuestionOutput) -> AnswersOutput:
    return AnswersOutput(tuple(item.answers for item in output.exchanges))
