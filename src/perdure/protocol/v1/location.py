"""Directories in V1: paths, the project, and the agents, commands and skills that apply there."""

from typing import Final, Literal

from msgspec import UNSET, UnsetType

from perdure.protocol.v1.endpoint import declare
from perdure.protocol.v1.message import V1ModelChoice
from perdure.protocol.v1.rule import V1Rule
from perdure.schema.codec import JsonObject, Record
from perdure.schema.settings.agent import AgentMode


class V1Paths(Record):
    home: str
    state: str
    config: str
    worktree: str
    directory: str


class V1ProjectTime(Record):
    created: int
    updated: int


class V1Project(Record):
    id: str
    worktree: str
    time: V1ProjectTime
    sandboxes: tuple[str, ...]
    vcs: Literal["git"] | UnsetType = UNSET


class V1ProjectDirectory(Record):
    directory: str


class V1AgentInfo(Record):
    name: str
    mode: AgentMode
    native: bool
    hidden: bool
    permission: tuple[V1Rule, ...]
    options: JsonObject
    description: str | UnsetType = UNSET
    color: str | UnsetType = UNSET
    model: V1ModelChoice | UnsetType = UNSET
    prompt: str | UnsetType = UNSET
    steps: int | UnsetType = UNSET


class V1Command(Record):
    name: str
    template: str
    source: Literal["command"]
    hints: tuple[str, ...]
    description: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    subtask: bool | UnsetType = UNSET


class V1Skill(Record):
    name: str
    location: str
    content: str
    description: str | UnsetType = UNSET


PATHS: Final = declare("GET", "/path", "path.get", V1Paths)
CURRENT_PROJECT: Final = declare("GET", "/project/current", "project.current", V1Project)
PROJECTS: Final = declare("GET", "/project", "project.list", tuple[V1Project, ...])
PROJECT_DIRECTORIES: Final = declare(
    "GET",
    "/project/{projectID}/directories",
    "project.directories",
    tuple[V1ProjectDirectory, ...],
)
AGENTS: Final = declare("GET", "/agent", "app.agents", tuple[V1AgentInfo, ...])
COMMANDS: Final = declare("GET", "/command", "command.list", tuple[V1Command, ...])
SKILLS: Final = declare("GET", "/skill", "app.skills", tuple[V1Skill, ...])

ENDPOINTS: Final = (
    PATHS,
    CURRENT_PROJECT,
    PROJECTS,
    PROJECT_DIRECTORIES,
    AGENTS,
    COMMANDS,
    SKILLS,
)
