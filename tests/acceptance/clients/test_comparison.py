"""The programs of docs/comparison.md: they run, they answer the same, and ours are not longer."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.acceptance.clients.scripted_openai import COUNTED, SENTENCE, scripted_openai
from tests.skipping import cannot_run
from tests.tidy.source_tree import ROOT

DOCUMENT: Final = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
PROGRAM: Final = re.compile(r"^```python\n# ([a-z-]+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
JOBS: Final[tuple[str, ...]] = (
    "Ask a question",
    "Let the model call a function",
    "Get a value of a type",
)
ANSWERS: Final[dict[str, str]] = dict(zip(JOBS, (SENTENCE, COUNTED, "France"), strict=True))
LIBRARIES: Final = ("perdure", "openai-agents", "pydantic-ai", "claude-agent-sdk")
OTHERS: Final = ROOT / ".venv-compare" / "bin" / "python"


def programs(job: str) -> dict[str, str]:
    part = DOCUMENT.partition(f"## {job}\n")[2].partition("\n## ")[0]
    return dict(PROGRAM.findall(part))


def run(python: str, program: str, home: Path, url: str) -> str:
    configuration = {
        "providers": {
            "openai": {
                "api": {
                    "type": "aisdk",
                    "package": "@ai-sdk/openai-compatible",
                    "url": url,
                }
            }
        }
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opencode.json").write_text(json.dumps(configuration), encoding="utf-8")
    ran = subprocess.run(
        [python, "-c", program],
        cwd=home,
        env={
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "src") if python == sys.executable else "",
            "OPENAI_API_KEY": "sk-scripted",
            "OPENAI_BASE_URL": url,
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.mark.parametrize("job", JOBS)
def test_each_job_is_shown_in_each_library_and_ours_is_not_longer(job: str) -> None:
    found = programs(job)
    assert tuple(found) == LIBRARIES
    lines = {name: program.count("\n") for name, program in found.items()}
    assert lines["perdure"] == min(lines.values())


@pytest.mark.parametrize("job", JOBS)
def test_our_program_answers(job: str, tmp_path: Path) -> None:
    with scripted_openai() as url:
        assert run(sys.executable, programs(job)["perdure"], tmp_path, url) == ANSWERS[job]


@pytest.mark.timeout(600)
def test_the_programs_of_the_other_libraries_answer_the_same(tmp_path: Path) -> None:
    _set_up()
    with scripted_openai() as url:
        for job in JOBS:
            for library in ("openai-agents", "pydantic-ai"):
                told = run(str(OTHERS), programs(job)[library], tmp_path, url)
                assert told == ANSWERS[job], library


def _set_up() -> None:
    """Create the environment of the other libraries, once for each lock."""
    ready = ROOT / ".venv-compare" / ".ready"
    lock = ROOT / "requirements-compare.lock"
    if ready.exists() and ready.stat().st_mtime >= lock.stat().st_mtime:
        return
    made = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "setup.py"), "compare"],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    if made.returncode != 0:
        cannot_run(f"the other libraries cannot be installed: {made.stderr[-500:]}")
    ready.touch()
