"""Skips a test that cannot run on this machine, with the reason.

It fails where the environment says that everything must be checked: `CI`, or `PERDURE_CI`, which
`.ci/run` sets.
"""

import os
from collections.abc import Mapping
from typing import Final, NoReturn

import pytest

# The environment outside of tests, some of which change it.
_MACHINE: Final = dict(os.environ)


def is_not_for(reason: str) -> NoReturn:
    """Skip a test that is meant for other machines than this, also where nothing may be skipped."""
    pytest.skip(reason)


def cannot_run(reason: str, environment: Mapping[str, str] = _MACHINE) -> NoReturn:
    """Skip the test, or fail it where a skip would go unseen."""
    for name in ("CI", "PERDURE_CI"):
        if environment.get(name, "") not in {"", "0", "false"}:
            pytest.fail(f"{reason}\nNothing may be skipped here, because {name} is set.")
    pytest.skip(reason)
