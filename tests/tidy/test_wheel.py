"""The wheel holds the package and nothing of the test harness."""

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

from tests.tidy.source_tree import PACKAGE, ROOT

TESTING = {
    "__init__.py",
    "faulty_provider.py",
    "host.py",
    "manual_clock.py",
    "provider_answer.py",
    "pytest_plugin.py",
    "scripted_model.py",
    "seeded_ids.py",
}
"""What `perdure.testing` offers to programs. A harness for our own tests belongs in tests/."""


def wheel_files() -> set[str]:
    builder = WheelBuilder(str(ROOT))
    return {file.distribution_path for file in builder.recurse_included_files()}


def test_the_wheel_holds_the_package_alone() -> None:
    files = wheel_files()
    assert "perdure/__init__.py" in files
    assert "perdure/py.typed" in files
    assert {name.split("/")[0] for name in files} == {"perdure"}
    shipped = {path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("*.py")}
    assert {name for name in files if name.endswith(".py")} == shipped


def test_the_wheel_holds_no_test_harness() -> None:
    files = wheel_files()
    testing = {Path(name).name for name in files if name.startswith("perdure/testing/")}
    assert testing == TESTING
    harness = {path.name for path in (ROOT / "tests" / "harness").rglob("*.py")} - {"__init__.py"}
    assert len(harness) > 10
    assert testing & harness == set()
    folders = {part for name in files for part in Path(name).parts}
    assert folders & {"tests", "harness", "simulation", "crash", "faults", "checkers"} == set()
