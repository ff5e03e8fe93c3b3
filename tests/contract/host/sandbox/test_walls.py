"""Walls are tried, and what cannot be used says why."""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from perdure.core.sandbox.policy import Place, make_policy
from perdure.host.process.runner import LocalProcesses
from perdure.host.sandbox.local_sandbox import LocalSandbox


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
