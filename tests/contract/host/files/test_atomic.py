"""A lock between processes that is taken at once or not at all."""

import subprocess
import sys
from pathlib import Path

import pytest

from perdure.host.files import atomic

HOLD = """
import sys
from perdure.host.files import atomic

with atomic.try_lock(sys.argv[1]) as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""


def test_one_scope_at_a_time_has_it(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with atomic.try_lock(path) as first:
        with atomic.try_lock(path) as second:
            assert (first, second) == (True, False)
        with atomic.try_lock(path) as third:
            assert not third
    with atomic.try_lock(path) as after:
        assert after


def test_a_process_that_dies_lets_it_go(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    command = (sys.executable, "-c", HOLD, path)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        with atomic.try_lock(path) as mine:
            assert not mine
        holder.kill()
        holder.wait(10)
    with atomic.try_lock(path) as mine:
        assert mine


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), atomic.try_lock(str(tmp_path / "lock")):
        pass
    assert not (tmp_path / "elsewhere").exists()
