"""Language servers of a Location, with a real program that behaves, or does not."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from perdure.core import limits
from perdure.core.settings.edit_programs import EditProgram
from perdure.host.files.filesystem import LocalFilesystem
from perdure.host.process.piped import LocalPipedProcesses
from perdure.location.workspace.language_server import ServerTimeouts
from perdure.location.workspace.language_servers import LanguageServers
from perdure.schema.codec import JsonObject
from perdure.tools.files.path_access import Target
from tests.support import language_server

QUICK = ServerTimeouts(answer=5, settle=0.2, start=5, stop=0.3, idle=60)
HURRIED = ServerTimeouts(answer=0.2, settle=0.1, start=0.5, stop=0.3, idle=60)


@dataclass
class Bench:
    """A directory, its servers, and what the scripted one heard."""

    root: Path
    servers: LanguageServers
    group: asyncio.TaskGroup

    @property
    def journal(self) -> Path:
        return self.root.parent / "journal"

    def program(self, mode: str, *, name: str = "scripted", **env: str) -> EditProgram:
        script = language_server.__file__
        assert script is not None
        return EditProgram(
            name=name,
            command=(sys.executable, "-S", script, mode, str(self.journal)),
            extensions=(".txt",),
            environment=env,
            initialization={"strict": True},
        )

    async def told(
        self,
        program: EditProgram,
        text: str | bytes,
        *,
        name: str = "a.txt",
        environment: Mapping[str, str] | None = None,
    ) -> tuple[str, ...]:
        path = self.root / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        target = Target(path=str(path), root=str(self.root), resource=name, external=False)
        files = LocalFilesystem().confined_to(str(self.root))
        return await self.servers.diagnose(program, target, files, environment or {})

    def heard(self) -> list[JsonObject]:
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return [json.loads(line) for line in lines]

    def methods(self) -> list[str]:
        return [line["method"] for line in self.heard() if line.get("method")]

    def begun(self) -> list[int]:
        return [line["began"] for line in self.heard() if "began" in line]

    async def until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            pause = asyncio.Event()
            while not happened():
                # Other processes set no events of ours.
                with suppress(TimeoutError):
                    await asyncio.wait_for(pause.wait(), 0.01)

    async def gone(self, *processes: int) -> None:
        await self.until(lambda: not any(map(_alive, processes)))


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


@asynccontextmanager
async def bench(tmp_path: Path, timeouts: ServerTimeouts = QUICK) -> AsyncGenerator[Bench]:
    root = tmp_path / "project"
    root.mkdir()
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:

        def start(work: Coroutine[None, None, None]) -> None:
            group.create_task(work)

        servers = LanguageServers(
            str(root), processes=LocalPipedProcesses(), start=start, timeouts=timeouts
        )
        made = Bench(root, servers, group)
        try:
            yield made
        finally:
            servers.close()
    await made.gone(*made.begun())


async def test_errors_are_told_with_their_place_and_nothing_else(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        program = at.program("sound")
        assert await at.told(program, "fine\n  wrong\nodd\n") == (
            "a.txt:2:3: error: this is wrong [test wrong]",
        )
        assert await at.told(program, "fine\n") == ()
        assert await at.told(program, "wrong") == ("a.txt:1:1: error: this is wrong [test wrong]",)
        await at.until(lambda: at.methods().count("textDocument/didSave") == 3)
    first, *_ = [line["params"] for line in at.heard() if line.get("method") == "initialize"]
    assert first["initializationOptions"] == {"strict": True}
    assert first["rootUri"] == (tmp_path / "project").as_uri()
    assert at.methods() == [
        "initialize",
        "initialized",
        "textDocument/didOpen",
        "textDocument/didSave",
        "textDocument/didChange",
        "textDocument/didSave",
        "textDocument/didChange",
        "textDocument/didSave",
    ]


async def test_a_server_without_versions_is_heard_until_it_falls_silent(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        told = await at.told(at.program("settling"), "wrong")
    assert told == ("a.txt:1:1: error: this is wrong [test wrong]",)


async def test_a_server_that_never_answers_is_soon_no_longer_waited_for(tmp_path: Path) -> None:
    async with bench(tmp_path, HURRIED) as at:
        loop, program = asyncio.get_running_loop(), at.program("never")
        began = loop.time()
        for _ in range(limits.LSP_SILENCES_MAX):
            assert await at.told(program, "wrong") == ()
        waited = loop.time() - began
        assert waited >= HURRIED.answer * limits.LSP_SILENCES_MAX
        for number in range(50):
            assert await at.told(program, f"wrong {number}") == ()
        assert loop.time() - began - waited < HURRIED.answer * 10


async def test_a_server_that_is_slow_to_start_holds_nobody_up(tmp_path: Path) -> None:
    async with bench(tmp_path, HURRIED) as at:
        program = at.program("slow")
        assert await at.told(program, "wrong") == ()
        # On a busy machine it was given up before it could say that it began.
        await at.gone(*at.begun())
        # What has happened since is told with the next edit, whose server is as slow.
        news = await at.told(program, "wrong")
        assert news == ("The language server scripted took too long to start.",)


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("garbage", "cannot be understood: a message has no end of its head"),
        ("dead", "ended by itself"),
        ("refuses", "refused to start"),
        ("dies", "ended by itself"),
        ("floods", "says too much"),
    ],
)
async def test_a_server_that_misbehaves_is_told_of_once_and_given_up(
    tmp_path: Path, mode: str, said: str
) -> None:
    async with bench(tmp_path) as at:
        told = [await at.told(at.program(mode), f"wrong {number}") for number in range(8)]
        await at.gone(*at.begun())
        assert len(at.begun()) == 1 + limits.LSP_RESTARTS_MAX
    assert told[0] == (f"The language server scripted {said}.",)
    assert told[1:] == [()] * 7


async def test_a_program_that_is_not_there_is_told_of_once(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        missing = EditProgram(name="missing", command=("/no/such/program",), extensions=(".txt",))
        (told,) = await at.told(missing, "wrong")
        assert await at.told(missing, "wrong") == ()
        strange = EditProgram(name="strange", command=("a\0b",), extensions=(".txt",))
        (odd,) = await at.told(strange, "wrong")
    assert told.startswith("The language server missing did not start: ")
    assert "No such file" in told
    assert odd.startswith("The language server strange did not start: ")


async def test_a_message_that_is_too_large_is_dropped_and_the_rest_heard(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        program = at.program("huge")
        assert await at.told(program, "wrong") == ("a.txt:1:1: error: this is wrong [test wrong]",)
        assert at.begun() == at.begun()[:1]


async def test_what_a_server_asks_is_answered(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        assert len(await at.told(at.program("curious"), "wrong")) == 1
        replies = [line for line in at.heard() if "method" in line and line["method"] is None]
    settings, capability, edit, unknown, folders = replies
    assert settings["result"] == [None, None]
    assert capability["result"] is None
    assert capability["error"] is None
    assert edit["result"] == {"applied": False}
    assert unknown["error"]["code"] == -32601
    assert folders["result"] == [{"uri": at.root.as_uri(), "name": "project"}]


async def test_a_server_that_reads_nothing_is_ended(tmp_path: Path) -> None:
    async with bench(tmp_path, HURRIED) as at:
        program, large = at.program("deaf"), "x" * limits.LSP_FILE_BYTES_MAX
        news: tuple[str, ...] = ()
        for _ in range(limits.LSP_UNREAD_BYTES_MAX // limits.LSP_FILE_BYTES_MAX + 2):
            news = news or await at.told(program, large)
        assert news == ("The language server scripted does not read what it is told.",)


async def test_several_files_are_looked_at_at_once_by_one_server(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        program = at.program("sound")
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(at.told(program, "fine\n" * n + "wrong", name=f"{n}.txt"))
                for n in range(20)
            ]
        assert len(at.begun()) == 1
    told = [task.result() for task in tasks]
    assert told == [(f"{n}.txt:{n + 1}:1: error: this is wrong [test wrong]",) for n in range(20)]


async def test_the_oldest_files_are_closed_again(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        program = at.program("sound")
        for n in range(limits.LSP_DOCUMENTS_OPEN_MAX + 3):
            assert await at.told(program, "fine", name=f"{n}.txt") == ()
        await at.until(lambda: at.methods().count("textDocument/didClose") == 3)
        # One that was closed is opened again.
        assert len(await at.told(program, "wrong", name="0.txt")) == 1


async def test_an_unused_server_is_asked_to_end_and_started_when_needed(tmp_path: Path) -> None:
    brief = ServerTimeouts(answer=5, settle=0.1, start=5, stop=5, idle=0.05)
    async with bench(tmp_path, brief) as at:
        for number in range(limits.LSP_RESTARTS_MAX + 3):
            assert len(await at.told(at.program("sound"), f"wrong {number}")) == 1
            await at.gone(*at.begun())
        assert len(at.begun()) == limits.LSP_RESTARTS_MAX + 3
        assert at.methods()[-2:] == ["shutdown", "exit"]


async def test_a_server_that_will_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    brief = ServerTimeouts(answer=5, settle=0.1, start=5, stop=0.1, idle=0.05)
    async with bench(tmp_path, brief) as at:
        assert len(await at.told(at.program("clings"), "wrong")) == 1
        began = at.heard()[0]
        await at.gone(began["began"], began["child"])
    assert at.methods()[-1] == "shutdown"


async def test_closing_the_location_ends_everything_at_once(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        assert len(await at.told(at.program("clings"), "wrong")) == 1
        began = at.heard()[0]
        at.servers.close()
        await at.gone(began["began"], began["child"])
        assert await at.told(at.program("sound"), "wrong") == ()
        assert len(at.begun()) == 1


async def test_another_configuration_is_another_server(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        assert len(await at.told(at.program("sound"), "wrong")) == 1
        assert len(await at.told(at.program("sound", LEVEL="2"), "wrong")) == 1
        first, second = at.begun()
        await at.gone(first)
        assert _alive(second)


async def test_a_server_has_the_variables_it_is_given_and_no_others(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        await at.told(at.program("sound"), "wrong", environment={"LEVEL": "2"})
        assert at.heard()[0]["variables"] == ["LEVEL"]
        assert "PATH" in os.environ


async def test_only_so_many_servers_run_at_a_time(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        for number in range(limits.LSP_RUNNING_MAX + 1):
            await at.told(at.program("sound", name=f"server {number}"), "wrong")
        assert len(at.begun()) == limits.LSP_RUNNING_MAX


@pytest.mark.parametrize("data", [b"\xff\xfe wrong", b"wrong" * limits.LSP_FILE_BYTES_MAX])
async def test_what_is_no_text_or_too_long_starts_nothing(tmp_path: Path, data: bytes) -> None:
    async with bench(tmp_path) as at:
        assert await at.told(at.program("sound"), data) == ()
        assert at.begun() == []


async def test_an_edit_that_is_given_up_leaves_the_server_as_it_is(tmp_path: Path) -> None:
    async with bench(tmp_path) as at:
        program = at.program("never")
        asking = at.group.create_task(at.told(program, "wrong"))
        await at.until(lambda: "textDocument/didOpen" in at.methods())
        asking.cancel()
        await asyncio.wait([asking])
        assert asking.cancelled()
        (process,) = at.begun()
        assert _alive(process)


def test_nothing_of_it_is_loaded_before_a_server_is_needed() -> None:
    script = (
        "import sys, perdure.runtime.app.engine;"
        " sys.exit(any('lsp_message' in name or name.endswith('.language_server')"
        " for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
