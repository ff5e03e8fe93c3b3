"""Every planted bug still fits the source, and one that does not says which symbol has changed."""

import ast
from typing import Final

import pytest

from tests.contract.tools.files.planted_bugs import FILE_RULE_BUGS
from tests.contract.tools.shell.planted_bugs import MISREAD_BUGS
from tests.crash.planted_bugs import SWEPT_BUGS
from tests.harness.planting.defect import Defect
from tests.harness.planting.edit import (
    After,
    Assign,
    Before,
    Define,
    DropKeyword,
    Edit,
    Instead,
    PlantingError,
    ReplaceCall,
    planted,
)
from tests.simulation.planted_bugs import PLANTED_BUGS
from tests.tidy.source_tree import PACKAGE, ROOT

DEFECTS: Final[tuple[Defect, ...]] = (
    *PLANTED_BUGS,
    *SWEPT_BUGS,
    *MISREAD_BUGS,
    *FILE_RULE_BUGS,
)
SOURCE: Final = '''
from elsewhere import shielded

class Store:
    async def append(self, events, *, running):
        """Appends."""
        number = 1

        async def job(tx):
            await tx.put(events, running=True)
            return number

        return await shielded(self.write(job))
'''


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_planted_bug_fits_the_source(defect: Defect) -> None:
    path = ROOT / "src" / (defect.module.replace(".", "/") + ".py")
    assert path.is_relative_to(PACKAGE)
    assert path.exists(), f"there is no {path.relative_to(ROOT)}: point {defect.name!r} elsewhere"
    assert defect.compiled(path.read_text(encoding="utf-8"), str(path))


def test_the_names_of_planted_bugs_differ() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS)


@pytest.mark.parametrize(
    ("symbol", "edit", "line"),
    [
        (
            "Store.append",
            Before("running = False"),
            "running = False\n        number = 1\n",
        ),
        ("Store.append", After("print(job)"), "        print(job)\n        return await"),
        ("Store.append", Instead("return None"), "running):\n        return None"),
        ("Store.append.job", After("self.tell()"), "            self.tell()\n            return"),
        ("Store.append", Assign("number", "2"), "        number = 2\n"),
        ("Store.append", ReplaceCall("put", "start(CALL)"), "start(tx.put(events, running=True))"),
        ("Store.append", ReplaceCall("shielded", "False"), "        return False"),
        ("Store.append.job", DropKeyword("tx.put", "running"), "await tx.put(events)\n"),
        ("shielded", Define("def shielded(work): ..."), "\n\ndef shielded(work):\n    ..."),
    ],
)
def test_an_edit_changes_what_it_names(symbol: str, edit: Edit, line: str) -> None:
    source = f"def start(work): ...\n{SOURCE}"
    assert line in ast.unparse(planted(source, symbol, edit))


@pytest.mark.parametrize(
    ("symbol", "edit", "message"),
    [
        ("Store.write", Instead("return"), "a definition of write is there 0 times"),
        ("Store", Instead("return"), "it is not a function"),
        ("Store.append", Before("running = asked"), "it knows no asked"),
        ("Store.append", Assign("count", "2"), "an assignment to count is there 0 times"),
        ("Store.append", ReplaceCall("get", "None"), "a call of get is there 0 times"),
        ("Store.append", DropKeyword("put", "seq"), "a call of put with seq is there 0 times"),
        ("patient", Define("patient = None"), "the module has no name patient"),
    ],
)
def test_an_edit_that_no_longer_fits_names_its_symbol(
    symbol: str, edit: Edit, message: str
) -> None:
    with pytest.raises(PlantingError, match=f"^{symbol}: {message}"):
        planted(SOURCE, symbol, edit)
