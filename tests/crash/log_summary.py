"""A summary of a log without times and generated ids, to compare two runs of one script.

The answer to each prompt is a list of steps. Of an answer that crashes cut, each step begins as one
of the whole answer does: it failed and was tried again, or it went on with interrupted calls.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from perdure.core.compaction import outcome
from perdure.core.session import recovery
from perdure.schema.codec import JsonObject
from perdure.schema.ids import MessageID
from perdure.schema.session import event as events
from perdure.schema.session.event import SessionEvent

STOPPED: Final = frozenset({recovery.CUT_OFF, recovery.ABANDONED})
"""How a step ends that a dead process left: it had begun, or a person gave it up."""


@dataclass(slots=True)
class Call:
    tool: str
    input: JsonObject | None = None
    outcome: object = None

    def is_cut_of(self, whole: "Call | None") -> bool:
        """Recorded in part or whole, and settled as interrupted or as it would have been."""
        return (
            whole is not None
            and self.tool == whole.tool
            and self.input in (None, whole.input)
            and (self.outcome == whole.outcome or _is_interrupted(self.outcome))
        )


@dataclass(slots=True)
class Step:
    agent: str
    model: str
    said: list[str] = field(default_factory=list[str])
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    end: str = ""
    failed: str = ""

    def is_cut_of(self, whole: "Step") -> bool:
        return self.failed in STOPPED and self._begins(whole)

    def is_continued(self, whole: "Step") -> bool:
        """Whether it ended as the whole one does, though a crash cut its calls."""
        return self.end == whole.end and bool(self.calls) and self._begins(whole)

    def _begins(self, whole: "Step") -> bool:
        return self.said == whole.said[: len(self.said)] and all(
            call.is_cut_of(whole.calls.get(name)) for name, call in self.calls.items()
        )


@dataclass(slots=True)
class LogSummary:
    asked: list[str] = field(default_factory=list[str])
    """What clients did, in the order of the log."""
    turned: list[str] = field(default_factory=list[str])
    """What the model was turned to, in the order of the log."""
    answers: dict[MessageID, list[Step]] = field(default_factory=dict[MessageID, list[Step]])
    told: list[str] = field(default_factory=list[str])
    summaries: list[str] = field(default_factory=list[str])
    summaries_begun: int = 0
    room_made: int = 0
    """Compactions that a turn needed. A crash may cut them together with the answer."""

    @property
    def latest(self) -> MessageID | None:
        """The prompt that was worked on last."""
        return next(reversed(self.answers), None)

    def cut(self, whole: "LogSummary") -> set[MessageID]:
        """The prompts whose answers are not the whole ones."""
        answers = self.answers.items()
        return {prompt for prompt, steps in answers if steps != whole.answers.get(prompt)}


def is_cut(steps: list[Step], whole: list[Step]) -> bool:
    """Whether `steps` is what crashes may have made of `whole`.

    A step that was cut may be followed by another try. The last one may have been given up.
    """
    at = 0
    for step in steps:
        if at == len(whole):
            return False
        if step == whole[at] or step.is_continued(whole[at]):
            at += 1
        elif not step.is_cut_of(whole[at]):
            return False
    return at == len(whole) or (bool(steps) and steps[-1].failed in STOPPED)


def tell(log: Iterable[SessionEvent]) -> LogSummary:
    """The story of one Session."""
    summary = LogSummary()
    steps: dict[MessageID, Step] = {}
    for event in log:
        if isinstance(event, events.StepStarted):
            step = steps[event.assistant_message_id] = Step(event.agent, event.model.id)
            summary.answers[next(reversed(summary.answers))].append(step)
        elif isinstance(event, events.StepFact):
            _follow(steps[event.assistant_message_id], event)
        elif not (isinstance(event, events.SyntheticAdded) and event.text == recovery.GO_ON):
            _take(summary, event)
    return summary


def _take(summary: LogSummary, event: SessionEvent) -> None:
    match event:
        case events.SessionCreated():
            summary.asked.append("created")
        case events.PromptAdmitted(message_id=id, delivery=delivery):
            summary.asked.append(f"{delivery} {id}")
        case events.PromptPromoted(message_id=id):
            summary.turned.append(id)
            summary.answers[id] = []
        case events.AgentSwitched(agent=agent):
            _both(summary, f"agent {agent}")
        case events.ModelSwitched(model=model):
            _both(summary, f"model {model.id}")
        case events.MessageExcluded(message_id=id):
            _both(summary, f"excluded {id}")
        case events.ContextUpdated(text=text):
            summary.told.append(text)
        case events.CompactionStarted() | events.CompactionEnded():
            _take_compaction(summary, event)
        case events.CompactionReported(note=outcome.CUT_OFF):
            pass  # The crash cut it, and it is made again.
        case _:
            raise AssertionError(f"the script makes no {type(event).__name__}")


def _take_compaction(
    summary: LogSummary, event: events.CompactionStarted | events.CompactionEnded
) -> None:
    match event:
        case events.CompactionStarted():
            summary.summaries_begun += 1
        case events.CompactionEnded(reason="auto"):
            summary.room_made += 1
        case events.CompactionEnded(text=text):
            summary.summaries.append(text)
            _both(summary, "compacted")


def _both(summary: LogSummary, what: str) -> None:
    summary.asked.append(what)
    summary.turned.append(what)


def _follow(step: Step, event: events.StepFact) -> None:
    match event:
        case events.TextEnded(text=text) | events.ReasoningEnded(text=text):
            step.said.append(text)
        case events.ToolInputStarted(call_id=id, name=name):
            step.calls[id] = Call(name)
        case events.ToolCalled(call_id=id, input=input):
            step.calls[id].input = input
        case events.ToolSucceeded(call_id=id, structured=structured):
            step.calls[id].outcome = _plain(structured)
        case events.ToolFailed(call_id=id, error=error):
            step.calls[id].outcome = error.message
        case events.StepEnded(finish=finish):
            step.end = finish
        case events.StepFailed(error=error):
            step.failed = error.message
        case _:
            pass


def _is_interrupted(outcome: object) -> bool:
    return isinstance(outcome, str) and outcome.startswith(recovery.INTERRUPTED)


def _plain(structured: Mapping[str, object]) -> dict[str, object]:
    """Without the place where it ran, which is another one in each run."""
    return {key: value for key, value in structured.items() if key != "target"}
