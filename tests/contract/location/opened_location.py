"""A machine of one's own for a test: home, configuration, repositories, and a host over them."""

import os
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from perdure.core.settings.settings import Settings
from perdure.host import environment
from perdure.host.environment import Environment
from perdure.host.files.filesystem import LocalFilesystem
from perdure.host.http.web_pages import WebClient
from perdure.host.mcp.connector import LocalMcpConnector
from perdure.host.process.piped import LocalPipedProcesses
from perdure.host.process.pty import LocalPtys
from perdure.host.process.runner import LocalProcesses
from perdure.location.config.config import Configuration
from perdure.location.context.registry import ContextRegistry
from perdure.location.factory import SharedServices
from perdure.location.mcp.servers import McpServices
from perdure.location.mcp.tool_lists import MemoryToolLists
from perdure.location.project.project import Projects
from perdure.location.project.repositories import Repositories
from perdure.location.skills.downloads import SkillDownloads
from perdure.location.tools.built_in import BuiltinTools
from perdure.location.tools.location_tools import ToolServices
from perdure.location.workspace.files import LocationFiles
from perdure.net.transport import HttpRequest, HttpResponse
from perdure.schema import codec
from perdure.schema.live_event import LiveEvent
from perdure.schema.location import LocationRef
from perdure.testing import ManualClock, SeededIds
from perdure.tools.api.registry import ToolRegistry
from perdure.tools.files.mutation import FileMutations
from tests.support.memory_saved_rules import MemorySavedRules


@dataclass
class RecordingTransport:
    """Answers every request with a finished stream, and remembers what was sent where."""

    requests: list[HttpRequest] = field(default_factory=list[HttpRequest])

    def open(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        return self._open(request)

    @asynccontextmanager
    async def _open(self, request: HttpRequest) -> AsyncGenerator[HttpResponse]:
        self.requests.append(request)
        yield HttpResponse(
            status=200, headers={"content-type": "text/event-stream"}, chunks=_finished()
        )


async def _finished() -> AsyncIterator[bytes]:
    yield b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
    yield b"data: [DONE]\n\n"


class LocationFolders:
    """Directories below `root`, and everything a Location needs, made when asked for."""

    def __init__(self, root: Path, **variables: str) -> None:
        self.root = root
        self.home = root / "home"
        self.project = root / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.variables = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_NOSYSTEM": "1",
            # The project is the test's own.
            "PERDURE_TRUSTED": "*",
            **variables,
        }
        self.published: list[tuple[LocationRef, LiveEvent]] = []
        self.tools_opened = 0
        self.tools_closed = 0
        self.transport = RecordingTransport()
        self.background: list[Coroutine[None, None, None]] = []
        """What was to be run beside everything else. It is not run."""

    @property
    def environment(self) -> Environment:
        return environment.from_variables(self.variables)

    @property
    def ref(self) -> LocationRef:
        return LocationRef(directory=str(self.project))

    def write(self, path: Path, value: object) -> Path:
        """A file of text, or of the JSON of any other value."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(value.encode() if isinstance(value, str) else codec.encode(value))
        return path

    def configure(self, value: object, *, name: str = "opencode.json") -> Path:
        return self.write(self.project / name, value)

    def configure_user(self, value: object) -> Path:
        return self.write(self.home / ".config" / "opencode" / "opencode.json", value)

    def settings(self, directory: Path | None = None, *, root: Path | None = None) -> Settings:
        at = directory or self.project
        return Configuration(self.environment).load(str(at), root=str(root or self.project))

    def git(self, *arguments: str, at: Path | None = None) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        command = ("git", *identity, "-c", "init.defaultBranch=main", *arguments)
        result = subprocess.run(
            command,
            cwd=at or self.project,
            env=self.variables,
            check=True,
            capture_output=True,
            text=True,
        )
        return result.stdout.strip()

    def host(self) -> SharedServices:
        clock, ids = ManualClock(), SeededIds()
        return SharedServices(
            environment=self.environment,
            configuration=Configuration(self.environment),
            projects=Projects(LocalProcesses(), self.variables),
            clock=clock,
            ids=ids,
            transport=self.transport,
            saved_rules=MemorySavedRules(ids),
            publish=lambda ref, event: self.published.append((ref, event)),
            open_tools=self._open_tools,
            open_files=self._open_files,
            terminals=LocalPtys(),
            servers=LocalPipedProcesses(),
            mcp=McpServices(
                connector=LocalMcpConnector(LocalPipedProcesses()),
                lists=MemoryToolLists(),
                start=self.background.append,
            ),
            start=self.background.append,
            skill_downloads=SkillDownloads(
                f"{self.environment.data_dir}/cache/skills",
                transport=self.transport,
                clock=clock,
                ids=ids,
                start=self.background.append,
            ),
            repositories=self.repositories(clock, ids),
            pages=WebClient(),
            context=ContextRegistry(),
        )

    def repositories(self, clock: ManualClock, ids: SeededIds) -> Repositories:
        return Repositories(
            f"{self.environment.data_dir}/repos",
            processes=LocalProcesses(),
            variables=self.variables,
            clock=clock,
            ids=ids,
            start=self.background.append,
        )

    def _open_files(self, site: ToolServices) -> LocationFiles:
        filesystem = LocalFilesystem()
        tools = BuiltinTools(
            filesystem=filesystem,
            processes=LocalProcesses(),
            mutations=FileMutations(filesystem),
        )
        return tools.files(site)

    @contextmanager
    def _open_tools(self, site: ToolServices) -> Generator[ToolRegistry]:
        self.tools_opened += 1
        yield ToolRegistry()
        self.tools_closed += 1


@contextmanager
def nobody_may_look(directory: Path) -> Generator[None]:
    """Take away the right to read a directory, from the superuser too, by changing the user."""
    directory.chmod(0)
    superuser = os.geteuid() == 0
    if superuser:
        os.seteuid(65534)
    try:
        yield
    finally:
        if superuser:
            os.seteuid(0)
        directory.chmod(0o755)
