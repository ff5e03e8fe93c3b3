"""`python -m tests.harness.planting "NAME" MODULE ...`: run a module with one planted bug.

python -m tests.harness.planting "a wake during a run is lost" tests.harness.simulation 20
python -m tests.harness.planting "a request goes out without its mark" tests.crash.sweep
"""

import argparse
import runpy
import sys
from collections.abc import Sequence

from tests.contract.tools.files.planted_bugs import FILE_RULE_BUGS
from tests.contract.tools.shell.planted_bugs import MISREAD_BUGS
from tests.crash.planted_bugs import SWEPT_BUGS
from tests.harness.planting.defect import Defect, plant
from tests.harness.planting.edit import PlantingError
from tests.simulation.planted_bugs import PLANTED_BUGS


def main(arguments: Sequence[str] | None = None) -> None:
    known = (*PLANTED_BUGS, *SWEPT_BUGS, *MISREAD_BUGS, *FILE_RULE_BUGS)
    defects: dict[str, Defect] = {bug.name: bug for bug in known}
    parser = argparse.ArgumentParser(
        prog="python -m tests.harness.planting", description="Run a module with one planted bug."
    )
    parser.add_argument("name", choices=defects, metavar="NAME", help="see docs/planted_bugs.md")
    parser.add_argument("module", metavar="MODULE", help="what is run, as with python -m")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="its arguments")
    options = parser.parse_args(arguments)
    defect = defects[options.name]
    plant(defect)
    sys.argv = [options.module, *options.rest]
    try:
        runpy.run_module(options.module, run_name="__main__", alter_sys=True)
    finally:
        if defect.module not in sys.modules:
            raise PlantingError(f"{defect.module} was never imported: no bug was planted")


if __name__ == "__main__":
    main()
