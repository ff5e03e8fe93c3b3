"""The programs of README.md and docs/howto are accepted by strict type checkers.

A program with mistakes is checked along with them, to see that the checker does find mistakes.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.tidy.source_tree import ROOT

WITHOUT_PROGRAMS: Final = {"editors.md"}
"""They tell how other programs are configured."""
DOCUMENTS: Final = (
    ROOT / "README.md",
    *sorted(
        path for path in (ROOT / "docs" / "howto").glob("*.md") if path.name not in WITHOUT_PROGRAMS
    ),
)
SECONDS_MAX: Final = 50
WRONG: Final = "wrong.py"
MISTAKES: Final = """
import perdure


async def wrong() -> None:
    async with perdure.open(".", data_dir=3) as host:
        session = await host.sessions.create(model=["demo"])
        print(session["id"], perdure.tools_of_the_trade)
"""
MISTAKE_LINES: Final = {6, 7, 8}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a file for each program."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
        assert blocks, document.name
        for number, block in enumerate(blocks, start=1):
            name = f"{document.stem.lower()}_{number}.py"
            (folder / name).write_text(block, encoding="utf-8")
    (folder / WRONG).write_text(MISTAKES, encoding="utf-8")
    return folder


def test_pyright_accepts_the_programs(programs: Path) -> None:
    options = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "include": ["."],
        "extraPaths": [str(ROOT / "src")],
    }
    (programs / "pyrightconfig.json").write_text(json.dumps(options), encoding="utf-8")
    checked = run(programs, "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", ".")
    report = json.loads(checked)
    found = [
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1, one["message"])
        for one in report["generalDiagnostics"]
    ]
    assert [one for one in found if one[0] != WRONG] == []
    assert {line for _, line, _ in found} == MISTAKE_LINES
    assert report["summary"]["filesAnalyzed"] >= len(list(programs.glob("*.py")))


def test_mypy_accepts_the_programs(programs: Path) -> None:
    # As for an installed package: only the programs are checked, against the types of ours.
    package = "[mypy-perdure.*]\nignore_errors = True\n"
    config = f"[mypy]\nstrict = True\nmypy_path = {ROOT / 'src'}\n{package}"
    (programs / "mypy.ini").write_text(config, encoding="utf-8")
    names = sorted(path.name for path in programs.glob("*.py"))
    options = ("--no-error-summary", "--hide-error-context", "--cache-dir", "cache")
    checked = run(programs, "mypy", *options, *names)
    found = [line for line in checked.splitlines() if ": error:" in line]
    assert [line for line in found if not line.startswith(f"{WRONG}:")] == []
    assert {int(line.split(":")[1]) for line in found} == MISTAKE_LINES


def run(folder: Path, module: str, *arguments: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    # The mistakes are found, and nothing else goes wrong.
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return ran.stdout
