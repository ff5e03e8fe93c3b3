"""The documents tell the truth: links lead somewhere, commands exist, examples run."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.contract.tools.files.planted_bugs import FILE_RULE_BUGS
from tests.contract.tools.shell.planted_bugs import MISREAD_BUGS
from tests.crash.planted_bugs import SWEPT_BUGS
from tests.simulation.planted_bugs import PLANTED_BUGS
from tests.tidy import source_tree
from tests.tidy.source_tree import PACKAGE, ROOT

DOCUMENTS: Final = tuple(path for path in source_tree.committed_files() if path.suffix == ".md")
MAKEFILE: Final = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS: Final = frozenset(re.findall(r"^([a-z]+):", MAKEFILE, flags=re.MULTILINE))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


every_document = pytest.mark.parametrize("path", DOCUMENTS, ids=relative)


@every_document
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", text)
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (path.parent / target).exists()] == []


@every_document
def test_make_targets_that_a_document_names_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^ {4}|^)make ([a-z]+)", text, flags=re.MULTILINE))
    assert named - TARGETS == set()


def test_each_decision_record_has_its_four_parts() -> None:
    records = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    for path in records:
        headings = re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert headings == ["Context", "Choice", "Cost", "When to revisit"], path.name


if (PACKAGE / "embedded" / "__init__.py").exists():

    def test_the_python_example_of_the_readme_runs(tmp_path: Path) -> None:
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
        assert len(blocks) == 1
        example = tmp_path / "example.py"
        example.write_text(blocks[0], encoding="utf-8")
        ran = subprocess.run(
            [sys.executable, str(example)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.strip()


def test_every_planted_bug_is_listed_with_what_notices_it() -> None:
    lines = (ROOT / "docs" / "planted_bugs.md").read_text(encoding="utf-8").splitlines()
    known = (*PLANTED_BUGS, *SWEPT_BUGS, *MISREAD_BUGS, *FILE_RULE_BUGS)
    planted = {(bug.name, bug.symbol) for bug in known}
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in lines]
    listed = {(row[0], row[1]) for row in rows if len(row) > 3 and ":" in row[1]}
    assert listed == planted
