"""A Location on a real disk with every built-in tool, and a permission desk that is read back."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from perdure.core.approval import rules as permission
from perdure.core.approval.rules import Decision
from perdure.core.request.tool_output import OutputLimits
from perdure.host.clock import SystemClock
from perdure.host.files.filesystem import LocalFilesystem
from perdure.host.process.runner import LocalProcesses
from perdure.location.approval.questions import LocationQuestions
from perdure.location.skills.context_source import AgentSkills
from perdure.location.skills.files import SkillFiles
from perdure.location.skills.skills import Skills
from perdure.ports import PermissionAsk, PermissionGate
from perdure.schema.approval.permission import Effect, Ruleset
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.ids import EventID, MessageID, PermissionID, SessionID, ToolCallID
from perdure.schema.live_event import LiveEvent
from perdure.schema.session.tool import TextContent
from perdure.tools.api.output_store import ToolOutputStore
from perdure.tools.api.registry import Settled, ToolError, ToolRegistry, ToolSuccess
from perdure.tools.api.tool import ToolCallContext
from perdure.tools.builtin.register import register_builtins
from perdure.tools.environment import ToolEnvironment
from perdure.tools.files.mutation import FileMutations
from perdure.tools.files.path_access import OwnDirectories, PathAccess

CONTEXT = ToolCallContext(
    session_id=SessionID("ses_test"),
    agent="build",
    assistant_message_id=MessageID("msg_test"),
    call_id=ToolCallID("call_1"),
)


@dataclass
class RecordedDesk:
    """Allows everything but the actions it was told to answer with an error."""

    answers: dict[str, Exception] = field(default_factory=dict[str, Exception])
    asked: list[PermissionAsk] = field(default_factory=list[PermissionAsk])
    meanwhile: Callable[[], object] | None = None
    """What another program does while a person decides."""
    look: Callable[[PermissionAsk], Awaitable[None]] | None = None
    """How a person looks at the request before deciding."""
    about_protected: Exception | None = None
    reading: Callable[[str], Effect] = permission.allow_all
    """What rules say to reading a file."""

    async def require(self, ask: PermissionAsk) -> None:
        self.asked.append(ask)
        if self.look is not None:
            await self.look(ask)
        if self.meanwhile is not None:
            self.meanwhile()
        if ask.protected and self.about_protected is not None:
            raise self.about_protected
        if ask.action in self.answers:
            raise self.answers[ask.action]

    async def evaluate(self, ask: PermissionAsk) -> Effect:
        effect = await self.effects(ask)
        return permission.strictest(Decision(effect(it)) for it in ask.resources).effect

    async def effects(self, ask: PermissionAsk) -> Callable[[str], Effect]:
        return self.reading if ask.action == "read" else permission.allow_all

    def questions(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(ask.action, ask.resources) for ask in self.asked]


@dataclass
class SettableClock:
    millis: int = 1_800_000_000_000

    def now_millis(self) -> int:
        return self.millis

    async def sleep(self, seconds: float) -> None:
        self.millis += int(seconds * 1_000)


@dataclass
class CountingIds:
    count: int = 0

    def named(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}_{self.count:06d}"

    def session(self) -> SessionID:
        return SessionID(self.named("ses"))

    def message(self) -> MessageID:
        return MessageID(self.named("msg"))

    def event(self) -> EventID:
        return EventID(self.named("evt"))

    def permission(self) -> PermissionID:
        return PermissionID(self.named("per"))


class ToolBench:
    def __init__(
        self, base: Path, *, ripgrep: str | None = None, gate: PermissionGate | None = None
    ) -> None:
        self.root = base / "project"
        self.outside = base / "outside"
        self.outputs = base / "tool-output"
        self.data = base / "data"
        self.configuration = base / "configuration"
        self.references: dict[str, str] = {}
        for directory in (self.root, self.outside, self.outputs):
            directory.mkdir()
        self.desk = RecordedDesk()
        self.filesystem = LocalFilesystem()
        self.clock = SettableClock()
        self.store = ToolOutputStore(
            str(self.outputs), filesystem=self.filesystem, ids=CountingIds(), clock=self.clock
        )
        self.limits = OutputLimits()
        self.environment = ToolEnvironment(
            filesystem=self.filesystem,
            processes=LocalProcesses(),
            permissions=gate or self.desk,
            path_access=PathAccess(
                str(self.root),
                filesystem=self.filesystem,
                permissions=gate or self.desk,
                own=OwnDirectories(
                    outputs=str(self.outputs),
                    data=str(self.data),
                    configuration=str(self.configuration),
                ),
                references=lambda: self.references,
            ),
            mutations=FileMutations(self.filesystem),
            outputs=self.store,
            ripgrep=ripgrep,
        )
        self.announced: list[LiveEvent] = []
        self.questions = LocationQuestions(ids=CountingIds(), publish=self.announced.append)
        self.skill_files = base / "skills"
        # The machine's own time: what was just written is told from what was there by its age.
        shelf = Skills([SkillFiles(str(self.skill_files), clock=SystemClock())])
        self.skills = AgentSkills(shelf, lambda agent: self.rules)
        self.rules: Ruleset = ()
        self.registry = ToolRegistry()
        self.context = CONTEXT

    def open(self) -> AbstractContextManager[None]:
        return register_builtins(self.registry, self.environment, self.questions, self.skills)

    async def call(self, name: str, /, **input: JsonValue) -> Settled:
        return await self.registry.materialize(()).settle(name, dict(input), self.context)

    async def success(self, name: str, /, **input: JsonValue) -> ToolSuccess:
        settled = await self.call(name, **input)
        assert isinstance(settled, ToolSuccess), settled
        return settled

    async def structured(self, name: str, /, **input: JsonValue) -> JsonObject:
        return (await self.success(name, **input)).structured

    async def text(self, name: str, /, **input: JsonValue) -> str:
        return text_of(await self.success(name, **input))

    async def error(self, name: str, /, **input: JsonValue) -> str:
        settled = await self.call(name, **input)
        assert isinstance(settled, ToolError), settled
        return settled.message

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


def text_of(success: ToolSuccess) -> str:
    return "".join(part.text for part in success.content if isinstance(part, TextContent))
