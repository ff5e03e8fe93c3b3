"""Pytest plugin for `mutate.py`: records the CPU time of each test and the functions it entered.

The result is written as JSON to the file that `ENTERED` names. Functions that run in other
processes are not recorded.
"""

import json
import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from time import process_time
from types import FrameType
from typing import Final

import pytest

PROGRAM: Final = f"{Path('src/perdure').resolve()}{os.sep}"
KEPT: Final = Path(os.environ["ENTERED"])
_functions: Final[set[str]] = set()
_tests: Final[dict[str, tuple[float, list[str]]]] = {}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _functions.clear()
    started = process_time()
    threading.settrace(_record_call)
    sys.settrace(_record_call)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)
        _tests[item.nodeid] = (process_time() - started, sorted(_functions))


def pytest_sessionfinish() -> None:
    KEPT.write_text(json.dumps(_tests), encoding="utf-8")


def _record_call(frame: FrameType, _event: str, _argument: object) -> None:
    code = frame.f_code
    if code.co_filename.startswith(PROGRAM) and code.co_name != "<module>":
        _functions.add(f"{code.co_filename.removeprefix(PROGRAM)}:{code.co_qualname}")
