"""Walls are tried, and what cannot be used says why."""

import asyncio
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import structs

from perdure.core.sandbox import host_list
from perdure.core.sandbox.policy import Place, make_policy
from perdure.host.process.piped import LocalPipedProcesses
from perdure.host.process.runner import LocalProcesses
from perdure.host.sandbox.local_sandbox import LocalSandbox
from perdure.ports.sandbox import Containment
from tests.skipping import cannot_run


async def test_a_wall_of_another_system_is_not_tried() -> None:
    sandbox = LocalSandbox(LocalProcesses(), ("seatbelt",))
    (trial,) = await sandbox.trials()
    assert trial.problem == "not available on linux"
    assert await sandbox.wall() is None
    assert await sandbox.wrap(("true",), policy=make_policy(()), directory="/") == ("true",)


async def test_bubblewrap_keeps_a_command_inside_or_is_not_installed() -> None:
    with TemporaryDirectory(dir="/var/tmp") as made:
        root = Path(made)
        for name in ("w", "out", "hidden"):
            (root / name).mkdir()
        (root / "hidden" / "secret").write_text("canary")
        places = (Place("write", f"{root}/w"), Place("hide", f"{root}/hidden"))
        sandbox = LocalSandbox(LocalProcesses(), ("bubblewrap",))
        (trial,) = await sandbox.trials()
        if shutil.which("bwrap") is None:
            assert trial.problem == "bwrap is not installed"
            return
        assert trial.problem == ""
        script = f"echo x > inside; echo x > {root}/out/file; cat {root}/hidden/*; pwd"
        result = await LocalProcesses().run(
            await sandbox.wrap(
                ("/bin/sh", "-c", script), policy=make_policy(places), directory=f"{root}/w"
            ),
            directory="/",
            environment={"PATH": os.environ["PATH"]},
            timeout_seconds=20,
            output_bytes_max=10_000,
        )
        assert (root / "w" / "inside").read_text() == "x\n"
        assert list((root / "out").iterdir()) == []
        assert b"canary" not in result.output
        assert result.output.endswith(f"{root}/w\n".encode())


async def test_a_program_that_is_spoken_to_by_pipes_is_inside() -> None:
    sandbox = LocalSandbox(LocalProcesses())
    if await sandbox.wall() is None:
        cannot_run("This kernel offers no sandbox")
    with TemporaryDirectory(dir="/var/tmp") as made:
        (Path(made) / "w").mkdir()
        policy = make_policy((Place("write", f"{made}/w"),))
        heard, ended = bytearray(), asyncio.Event()
        process = await Containment(sandbox, lambda: policy).start(
            LocalPipedProcesses(),
            ("/bin/sh", "-c", f"read line; echo $line > inside; echo x > {made}/out; echo done"),
            directory=f"{made}/w",
            environment={"PATH": os.environ["PATH"]},
            heard=heard.extend,
            ended=ended.set,
        )
        assert process.send(b"hello\n")
        async with asyncio.timeout(20):
            await ended.wait()
            await process.gone()
        assert bytes(heard) == b"done\n"
        assert (Path(made) / "w" / "inside").read_text() == "hello\n"
        assert not (Path(made) / "out").exists()


async def test_landlock_leaves_the_network_off_where_hosts_are_listed() -> None:
    sandbox = LocalSandbox(LocalProcesses(), ("landlock",))
    (trial,) = await sandbox.trials()
    if trial.problem:
        cannot_run(f"This kernel does not offer landlock: {trial.problem}")
    hosts = host_list.parse_list(["*"])
    policy = structs.replace(make_policy(()), hosts=hosts)
    code = "import socket; socket.socket(socket.AF_INET)"
    program = await Containment(sandbox, lambda: policy).contain(
        ("python3", "-c", code), directory="/", environment={"PATH": os.environ["PATH"]}
    )
    assert "HTTPS_PROXY" not in program.environment
    result = await LocalProcesses().run(
        program.arguments,
        directory="/",
        environment=program.environment,
        timeout_seconds=20,
        output_bytes_max=10_000,
    )
    assert b"PermissionError" in result.output
