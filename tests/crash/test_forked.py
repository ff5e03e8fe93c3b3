"""The fork helper reports how a child ended, and refuses to fork where that would not be safe."""

import subprocess
import sys
import threading
from typing import Final

import pytest

from tests.fixtures import ROOT
from tests.harness.crash.forked import run_forked

PROGRAM: Final = """
import os, signal, sys
from tests.harness.crash.forked import run_forked

def fail(descriptor):
    raise ValueError("a defect of the child")

def die(descriptor):
    os.write(descriptor, b"last words")
    os.kill(os.getpid(), signal.SIGKILL)

for work in (lambda descriptor: os.write(descriptor, b"fine"), fail, die):
    ended = run_forked(work)
    print(ended.code, ended.output.decode(), ended.killed)
"""

COPIES: Final = """
import os, sys
from tests.harness.crash.forked import kill_copies

def work(child):
    for moment in range(1, 5):
        os.write(child.descriptor, b"%d" % moment)
        child.reach(moment)
        if moment == int(sys.argv[1]):
            raise ValueError("a defect of the child")

def deaths():
    print((yield from kill_copies(work, {2, 4})).code)

for moment, ended in deaths():
    print(moment, ended.code, ended.output.decode())
"""
LEFT_ALONE: Final = """
import os
from tests.harness.crash.forked import kill_copies

reader, writer = os.pipe()

def work(child):
    os.close(reader)
    os.write(writer, b"begun ")
    child.reach(1)
    os.write(writer, b"went on")

deaths = kill_copies(work, {1})
next(deaths)
os.close(writer)
deaths.close()
print(os.read(reader, 100).decode(), os.read(reader, 100) == b"")
"""


def test_a_child_is_told_apart_by_how_it_ended() -> None:
    ran = _ran(PROGRAM)
    assert ran.stdout.splitlines() == ["0 fine False", "1  False", "-9 last words True"]
    assert "ValueError: a defect of the child" in ran.stderr


def test_a_child_stands_still_at_each_death_of_a_copy_and_then_goes_on() -> None:
    assert _ran(COPIES, "0").stdout.splitlines() == ["2 -9 12", "4 -9 1234", "0"]


def test_a_child_that_fails_between_two_deaths_is_not_taken_for_dead() -> None:
    ran = _ran(COPIES, "3")
    assert ran.stdout.splitlines() == ["2 -9 12", "1"]
    assert "ValueError: a defect of the child" in ran.stderr


def test_a_child_whose_caller_is_gone_does_not_go_on() -> None:
    assert _ran(LEFT_ALONE).stdout == "begun  True\n"


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


def _ran(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
