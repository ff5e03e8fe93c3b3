"""The terminals of a Location: what they run, who reads them, and what stays of them."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.host.process.pty import LocalPtys
from perdure.location.workspace.terminals import Attachment, LocationTerminals
from perdure.schema.errors import (
    InvalidRequestError,
    PtyNotFoundError,
    ServiceUnavailableError,
)
from perdure.schema.files.pty import PtyExitedError, PtyInfo, PtySize, PtyStart
from perdure.schema.ids import PtyID
from perdure.schema.live_event import LiveEvent, PtyCreated, PtyDeleted, PtyExited, PtyUpdated
from perdure.testing import SeededIds
from tests.requirements import requirement

PATIENCE_SECONDS = 10
NOTHING = PtyStart()


class Bench:
    def __init__(self, directory: Path, group: asyncio.TaskGroup, **variables: str) -> None:
        self.published: list[LiveEvent] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._group = group
        self.terminals = LocationTerminals(
            str(directory),
            host=LocalPtys(),
            ids=SeededIds(),
            variables={"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", **variables},
            publish=self.published.append,
            start=self._start,
        )

    def _start(self, work: Coroutine[None, None, None]) -> None:
        self.tasks.append(self._group.create_task(work))

    async def run(self, script: str, asked: PtyStart = NOTHING) -> PtyInfo:
        start = replace(asked, command="/bin/sh", args=("-c", script))
        return await self.terminals.create(start, shell=None)

    async def ended(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.wait(self.tasks)

    async def output(self, script: str, asked: PtyStart = NOTHING) -> str:
        """All that a script prints; it waits for a line before it begins."""
        info = await self.run(f"read -r go; {script}", asked)
        with self.terminals.attached(info.id, None) as reader:
            await reader.write(b"\n")
            return await everything(reader)


async def everything(reader: Attachment) -> str:
    text = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (more := await reader.next()) is not None:
            text += more
    return text


async def until(reader: Attachment, wanted: str) -> str:
    pieces: list[str] = []
    tail = ""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while wanted not in tail:
            pieces.append(await reader.next() or "")
            # Looking through everything each time would take longer than printing it.
            tail = tail[-len(wanted) :] + pieces[-1]
    return "".join(pieces)


@asynccontextmanager
async def opened(directory: Path, **variables: str) -> AsyncGenerator[Bench]:
    async with asyncio.TaskGroup() as group:
        bench = Bench(directory, group, **variables)
        try:
            yield bench
        finally:
            bench.terminals.close()


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    async with opened(tmp_path) as found:
        yield found


@requirement("S19", "S94")
async def test_what_we_force_lies_over_what_was_asked_for_over_what_there_was(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, A="process", B="process", OPENCODE_SERVER_PASSWORD="s") as bench:
        asked = (("B", "caller"), ("TERM", "dumb"), ("OPENCODE_TERMINAL", "0"))
        text = await bench.output(
            'echo "$A $B $TERM $OPENCODE_TERMINAL [$OPENCODE_SERVER_PASSWORD]"', PtyStart(env=asked)
        )
    assert "process caller xterm-256color 1 []" in text


async def test_without_a_command_it_is_the_users_login_shell(bench: Bench, tmp_path: Path) -> None:
    info = await bench.terminals.create(PtyStart(), shell=None)
    assert (info.command, info.args, info.cwd) == ("/bin/sh", ("-l",), str(tmp_path))
    assert info.title == f"Terminal {info.id[-4:]}"
    configured = await bench.terminals.create(PtyStart(), shell="/bin/bash")
    assert configured.command == "/bin/bash"
    missing = await bench.terminals.create(PtyStart(), shell="/no/such/shell")
    assert missing.command == "/bin/sh"


async def test_given_arguments_are_left_alone(bench: Bench) -> None:
    none = await bench.terminals.create(PtyStart(command="sh", args=()), shell=None)
    assert (none.command, none.args) == ("sh", ())
    assert (await bench.run("exit 0")).args == ("-c", "exit 0")


async def test_a_directory_is_relative_to_the_location(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert (await bench.run("exit 0", PtyStart(cwd="sub"))).cwd == f"{tmp_path}/sub"
    assert f"{tmp_path}/sub" in await bench.output("pwd", PtyStart(cwd="sub/../sub"))


@pytest.mark.parametrize(
    "asked",
    [
        PtyStart(command="/no/such/bin"),
        PtyStart(command="no-such-program"),
        PtyStart(command="/etc"),
        PtyStart(command="a\0b"),
        PtyStart(command="\ud800"),
        PtyStart(cwd="/nonexistent"),
        PtyStart(cwd="a\0b"),
        PtyStart(args=("a\0b",)),
        PtyStart(args=("\ud800",)),
        PtyStart(env=(("A=B", "c"),)),
        PtyStart(env=(("", "c"),)),
        PtyStart(env=(("A", "\0"),)),
        PtyStart(args=("x" * (4 * 1024 * 1024),)),
    ],
)
async def test_what_cannot_start_is_refused_and_leaves_nothing(
    bench: Bench, asked: PtyStart
) -> None:
    with pytest.raises(InvalidRequestError):
        await bench.terminals.create(asked, shell=None)
    assert bench.terminals.list() == ()
    assert not bench.terminals.running
    assert bench.published == []


async def test_many_readers_see_the_same_and_a_late_one_reads_on_from_its_cursor(
    bench: Bench,
) -> None:
    info = await bench.run("stty -echo; echo first; read -r line; echo second; read -r line")
    with bench.terminals.attached(info.id, None) as early:
        assert await until(early, "first\r\n") == "first\r\n"
        seen = early.cursor
        with (
            bench.terminals.attached(info.id, seen) as late,
            bench.terminals.attached(info.id, 0) as whole,
            bench.terminals.attached(info.id, -1) as tail,
            bench.terminals.attached(info.id, 10**9) as lost,
        ):
            assert whole.kept() == lost.kept() == "first\r\n"
            assert (late.kept(), tail.kept()) == ("", "")
            await late.write(b"\n")
            for reader in (early, late, whole, tail, lost):
                assert await until(reader, "second\r\n") == "second\r\n"


async def test_a_reader_that_falls_behind_is_ended_and_the_others_are_not(bench: Bench) -> None:
    lines = limits.PTY_KEPT_UNITS_MAX // 1_000 * 2
    printing = f"yes {'x' * 999} | head -n {lines}"
    script = f"stty -echo -onlcr; echo ready; read -r go; {printing}; echo done; read -r go"
    info = await bench.run(script)
    with (
        bench.terminals.attached(info.id, 0) as slow,
        bench.terminals.attached(info.id, 0) as quick,
    ):
        await until(quick, "ready\n")
        await quick.write(b"\n")
        text = await until(quick, "done\n")
        assert len(text) == lines * 1_000 + len("done\n")
        assert await slow.next() is None
        assert (slow.lagged, quick.lagged) == (True, False)


async def test_an_exit_is_told_and_remembered(bench: Bench) -> None:
    info = await bench.run("read -r line; exit 3", PtyStart(title="mine"))
    with bench.terminals.attached(info.id, 0) as reader:
        await reader.write(b"\n")
        await everything(reader)
        assert not reader.lagged
    await bench.ended()
    found = bench.terminals.get(info.id)
    assert (found.status, found.exit_code, found.title) == ("exited", 3, "mine")
    assert not bench.terminals.running
    with pytest.raises(PtyExitedError), bench.terminals.attached(info.id, 0):
        pass
    renamed = bench.terminals.update(info.id, title="old", size=PtySize(rows=1, cols=1))
    assert renamed.title == "old"
    assert bench.published == [
        PtyCreated(info),
        PtyExited(id=info.id, exit_code=3),
        PtyUpdated(renamed),
    ]


async def test_one_that_is_removed_ends_at_once_and_its_readers_with_it(bench: Bench) -> None:
    info = await bench.run("sleep 60")
    with bench.terminals.attached(info.id, 0) as reader:
        await bench.terminals.remove(info.id)
        assert await everything(reader) == ""
    await bench.ended()
    assert bench.published == [PtyCreated(info), PtyDeleted(id=info.id)]
    with pytest.raises(PtyNotFoundError):
        await bench.terminals.remove(info.id)


async def test_only_the_last_exits_are_remembered(bench: Bench) -> None:
    infos = [await bench.run("exit 0") for _ in range(limits.PTYS_EXITED_MAX + 2)]
    await bench.ended()
    kept = bench.terminals.list()
    assert len(kept) == limits.PTYS_EXITED_MAX
    assert {info.id for info in kept} <= {info.id for info in infos}
    assert sum(isinstance(event, PtyDeleted) for event in bench.published) == 2


async def test_there_is_a_limit_to_how_many_run(bench: Bench) -> None:
    for _ in range(limits.PTYS_RUNNING_MAX):
        await bench.run("sleep 60")
    with pytest.raises(ServiceUnavailableError):
        await bench.run("sleep 60")
    bench.terminals.close()
    await bench.ended()
    assert not bench.terminals.running


async def test_what_is_not_there_is_not_found(bench: Bench) -> None:
    unknown = PtyID("pty_unknown")
    with pytest.raises(PtyNotFoundError):
        bench.terminals.get(unknown)
    with pytest.raises(PtyNotFoundError):
        bench.terminals.update(unknown, title="x", size=None)
    with pytest.raises(PtyNotFoundError), bench.terminals.attached(unknown, None):
        pass
