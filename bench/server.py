"""Starts, observes and stops the server under test."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

CLOCK = os.sysconf("SC_CLK_TCK")


@dataclass
class Target:
    """How to run one server. Every string may use {port}, {home}, {project} and {llm}."""

    name: str
    command: list[str]
    env: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    files: dict[str, object] = field(default_factory=dict)  # written into the scratch project
    database: list[str] = field(default_factory=list)  # globs of the durable store, WAL included
    seeder: str = "turns"  # how a long history is built: "turns" or "opencode-sqlite"
    model: dict[str, str] = field(
        default_factory=lambda: {"providerID": "fake", "id": "fake-model"}
    )

    @staticmethod
    def load(path: str) -> Target:
        return Target(**json.loads(Path(path).read_text()))


def fill(value: object, names: dict[str, str]) -> object:
    if isinstance(value, str):
        for key, text in names.items():
            value = value.replace("{" + key + "}", text)
        return value
    if isinstance(value, list):
        return [fill(item, names) for item in value]
    if isinstance(value, dict):
        return {fill(key, names): fill(item, names) for key, item in value.items()}
    return value


class Server:
    """One instance of a target with its own HOME and scratch git project."""

    def __init__(self, target: Target, root: Path, port: int, llm: str) -> None:
        self.target, self.root, self.port = target, root, port
        self.home, self.project = root / "home", root / "project"
        self.names = {
            "port": str(port),
            "home": str(self.home),
            "project": str(self.project),
            "llm": llm,
        }
        self.base = f"http://127.0.0.1:{port}"
        self.process: subprocess.Popen | None = None

    def reset(self) -> None:
        """Create a new HOME and project."""
        shutil.rmtree(self.root, ignore_errors=True)
        self.home.mkdir(parents=True)
        self.project.mkdir(parents=True)
        (self.project / "README.md").write_text("# bench project\n")
        (self.project / "small.txt").write_text("hello small file\n")
        for name, content in self.target.files.items():
            text = content if isinstance(content, str) else json.dumps(content, indent=2)
            (self.project / name).write_text(str(fill(text, self.names)))
        git = [
            "git",
            "-c",
            "user.email=bench@localhost",
            "-c",
            "user.name=bench",
            "-C",
            str(self.project),
        ]
        env = {**os.environ, "HOME": str(self.home)}
        for args in (["init", "-q", "."], ["add", "-A"], ["commit", "-q", "-m", "bench"]):
            subprocess.run(
                [*git, *args],
                check=True,
                env=env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def spawn(self, prefix: list[str] | None = None) -> int:
        """Starts the process; returns the monotonic time just before, in ns."""
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            **{key: str(fill(value, self.names)) for key, value in self.target.env.items()},
        }
        command = [*(prefix or []), *fill(self.target.command, self.names)]
        started = time.monotonic_ns()
        with (self.root / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.project,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return started

    def poll(self, path: str, timeout: float = 60) -> int:
        """Requests `path` on new connections until one answers 200; returns that moment in ns.

        Every 10 ms one more request is sent without waiting for the earlier ones: opencode never
        answers a request that arrives in the first moments after it begins to listen.
        """
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        request += (
            "".join(f"{key}: {value}\r\n" for key, value in self.target.headers.items()) + "\r\n"
        )
        limit = time.monotonic() + timeout
        waiting: list[socket.socket] = []
        try:
            while time.monotonic() < limit:
                if self.process is not None and self.process.poll() is not None:
                    raise RuntimeError(
                        f"{self.target.name} exited with {self.process.returncode}; "
                        f"see {self.root}/server.log"
                    )
                with contextlib.suppress(OSError):
                    connection = socket.create_connection(("127.0.0.1", self.port), timeout=1)
                    connection.sendall(request.encode())
                    waiting.append(connection)
                if not waiting:
                    time.sleep(0.002)
                    continue
                for connection in select.select(waiting, [], [], 0.01)[0]:
                    now = time.monotonic_ns()
                    with contextlib.suppress(OSError):
                        if connection.recv(64).startswith(b"HTTP/1.1 200"):
                            return now
                    connection.close()
                    waiting.remove(connection)
        finally:
            for connection in waiting:
                connection.close()
        raise TimeoutError(f"{self.target.name} did not answer {path} in {timeout} s")

    def start(self, prefix: list[str] | None = None) -> tuple[float, float]:
        """Starts and waits; returns ms until /api/health and until /api/session answered 200."""
        began = self.spawn(prefix)
        health = self.poll("/api/health")
        listed = self.poll("/api/session")
        return (health - began) / 1e6, (listed - began) / 1e6

    def stop(self) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(5)
        self.process = None

    # ---- observation -------------------------------------------------------------------------

    def tree(self) -> list[int]:
        """Returns the server's process and its living descendants."""
        found, queue = [], [self.process.pid]
        while queue:
            pid = queue.pop()
            found.append(pid)
            with contextlib.suppress(OSError):
                for thread in os.listdir(f"/proc/{pid}/task"):
                    with contextlib.suppress(OSError):
                        queue += map(
                            int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
                        )
        return found

    def memory(self) -> dict[str, float]:
        """Returns the MiB of the process tree, and the peak resident size of the main process."""
        total = {"Rss": 0, "Private_Clean": 0, "Private_Dirty": 0, "Anonymous": 0}
        for pid in self.tree():
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                    key, _, rest = line.partition(":")
                    if key in total:
                        total[key] += int(rest.split()[0])
        peak = 0
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                peak = int(line.split()[1])
        return {
            "rss_mib": round(total["Rss"] / 1024, 1),
            "private_mib": round((total["Private_Clean"] + total["Private_Dirty"]) / 1024, 1),
            "anonymous_mib": round(total["Anonymous"] / 1024, 1),
            "peak_mib": round(peak / 1024, 1),
        }

    def cpu(self) -> float:
        """Returns the CPU milliseconds of the main process and its reaped children so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) * 1000 / CLOCK

    def io(self) -> dict[str, int]:
        """Returns the bytes of write(2) calls and of storage writes of the main process."""
        rows = dict(
            line.split(": ")
            for line in Path(f"/proc/{self.process.pid}/io").read_text().splitlines()
        )
        return {
            "wchar": int(rows["wchar"]),
            "write_bytes": int(rows["write_bytes"]),
            "syscw": int(rows["syscw"]),
        }

    def database_files(self) -> list[Path]:
        return [
            Path(p)
            for pattern in self.target.database
            for p in glob.glob(str(fill(pattern, self.names)), recursive=True)
        ]

    def database_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.database_files() if path.is_file())

    def home_bytes(self) -> int:
        total = 0
        for folder, _, files in os.walk(self.home):
            for name in files:
                with contextlib.suppress(OSError):
                    total += os.stat(os.path.join(folder, name)).st_blocks * 512
        return total
