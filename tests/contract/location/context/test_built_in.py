"""What every Session is told: the date where it runs, and where that is."""

import os
import subprocess
import sys

import pytest

from tests.requirements import requirement

_ASK = """
import asyncio
from perdure.location.context import built_in
from perdure.location.context.registry import Subject
from perdure.schema.ids import SessionID
from perdure.schema.location import LocationInfo, ProjectRef
from perdure.schema.ids import ProjectID
from perdure.testing import ManualClock

async def where():
    project = ProjectRef(id=ProjectID("global"), directory="/")
    return LocationInfo(directory="/work", project=project)

async def main():
    clock = ManualClock(1_780_000_000_000)
    subject = Subject(session_id=SessionID("ses_a"))
    told = await built_in.observe(where, subject, platform="linux", clock=clock)
    print([item.baseline() for item in told if item.key == "core/date"][0])

asyncio.run(main())
"""


@requirement("S52", "S53")
@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("UTC0", "Thu May 28 2026"),
        ("KIR-14", "Fri May 29 2026"),
        ("PAG11", "Thu May 28 2026"),
    ],
)
def test_the_date_is_the_local_one_of_the_host(zone: str, day: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", _ASK],
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == f"Today is {day}.\n"
