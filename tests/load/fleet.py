"""Servers of one data directory that are killed and stopped while clients use them.

Each server is the program as a user starts it, the leader of a process group of its own; a signal
goes to the whole group. A call goes to any server that answers.
"""

import asyncio
import os
import re
import signal
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from perdure.schema.codec import JsonValue
from tests.support.api import Answer, Api, RefusedError
from tests.support.project import ProjectFolders

NO_ANSWER: Final = (OSError, RefusedError, TimeoutError, asyncio.IncompleteReadError)
"""What a caller sees of a process that is killed meanwhile."""
PAUSE_SECONDS: Final = (0.3, 1.2)
"""Between two signals."""
STARTS_SECONDS_MAX: Final = 30
STOPS_SECONDS_MAX: Final = 30
SIGTERM_SHARE: Final = 0.4
_PORT: Final = re.compile(rb"listening on http://127\.0\.0\.1:(\d+)")


@dataclass(slots=True)
class Server:
    process: asyncio.subprocess.Process
    api: Api
    log: Path

    async def end(self, number: signal.Signals) -> int:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        async with asyncio.timeout(STOPS_SECONDS_MAX):
            return await self.process.wait()


@dataclass(slots=True)
class Fleet:
    folders: ProjectFolders
    chance: Random
    size: int
    servers: list[Server] = field(default_factory=list[Server])
    logs: list[Path] = field(default_factory=list[Path])
    signals: Counter[str] = field(default_factory=Counter[str])
    trouble: list[str] = field(default_factory=list[str])
    """Answers that no client should get."""
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def start(self) -> None:
        while len(self.servers) < self.size:
            await self._add()

    async def stop(self) -> None:
        for server in self.servers:
            if await server.end(signal.SIGTERM) != 0:
                self.trouble.append(f"a stopped server failed: {server.log.read_text()[-500:]}")
        self.servers.clear()

    async def disturb(self, over: asyncio.Event) -> None:
        """Kill or stop one server after the other, and start another in its place."""
        while not over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self.chance.uniform(*PAUSE_SECONDS)):
                    await over.wait()
            stops = self.chance.random() < SIGTERM_SHARE
            number = signal.SIGTERM if stops else signal.SIGKILL
            victim = self.chance.choice(self.servers)
            self.servers.remove(victim)
            code = await victim.end(number)
            if code != (0 if stops else -signal.SIGKILL):
                self.trouble.append(f"{number.name} ended a server with {code}")
            self.signals[number.name] += 1
            await self._add()

    async def some(self) -> Server:
        """Any server; waits for one when there is none."""
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self.servers))
        return self.chance.choice(self.servers)

    async def call(
        self,
        method: str,
        path: str,
        body: JsonValue = None,
        *,
        patient: bool = False,
    ) -> Answer | None:
        """The answer of some server; None without one.

        `patient` asks again until there is one: only for what may be asked twice.
        """
        while True:
            server = await self.some()
            try:
                answer = await server.api.call(method, path, body)
            except NO_ANSWER:
                if not patient:
                    return None
                continue
            if answer.status == 503 and patient:
                continue
            if answer.status >= 500 and answer.status not in {503, 507}:
                self.trouble.append(f"{method} {path}: {answer.status} {answer.body[:300]!r}")
            return answer

    async def read(self, path: str) -> JsonValue:
        answer = await self.call("GET", path, patient=True)
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status} {answer.body[:300]!r}"
        return answer.json

    async def _add(self) -> None:
        log = self.folders.data.parent / f"server-{len(self.logs)}.log"
        self.logs.append(log)
        program = str(Path(sys.executable).with_name("perdure"))
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(program, "serve", "--port", "0", "--no-auth"),
                *("--data-dir", str(self.folders.data)),
                env=self.folders.variables,
                cwd=self.folders.project,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert process.stdout is not None
        async with asyncio.timeout(STARTS_SECONDS_MAX):
            found = _PORT.search(await process.stdout.readline())
        assert found is not None, log.read_text()
        async with self._changed:
            self.servers.append(Server(process, Api(int(found[1])), log))
            self._changed.notify_all()
