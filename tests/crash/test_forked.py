"""The fork helper tells how a child ended, and refuses to fork where that would not be safe."""

import subprocess
import sys
import threading
from typing import Final

import pytest

from perdure.testing.forked import run_forked
from tests.fixtures import ROOT

PROGRAM: Final = """
import os, signal, sys
from perdure.testing.forked import run_forked

def fail(descriptor):
    raise ValueError("a defect of the child")

def die(descriptor):
    os.write(descriptor, b"last words")
    os.kill(os.getpid(), signal.SIGKILL)

for work in (lambda descriptor: os.write(descriptor, b"fine"), fail, die):
    ended = run_forked(work)
    print(ended.code, ended.said.decode(), ended.killed)
"""


def test_a_child_is_told_apart_by_how_it_ended() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert ran.stdout.splitlines() == ["0 fine False", "1  False", "-9 last words True"]
    assert "ValueError: a defect of the child" in ran.stderr


def test_a_process_with_threads_is_not_forked() -> None:
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        with pytest.raises(AssertionError, match="threads"):
            run_forked(lambda descriptor: None)
    finally:
        over.set()
        other.join()
