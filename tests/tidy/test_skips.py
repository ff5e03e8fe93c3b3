"""In continuous integration a test that cannot run fails, because a skip would go unseen."""

import pytest

from tests import skipping
from tests.tidy.source_tree import ROOT


@pytest.mark.parametrize("name", ["CI", "PERDURE_CI"])
def test_continuous_integration_fails_without_the_packages_of_npm(name: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=rf"no registry(.|\n)*{name} is set"):
        skipping.cannot_run("no registry", {"PATH": "/bin", name: "1"})


@pytest.mark.parametrize("environment", [{}, {"CI": ""}, {"CI": "false"}, {"PERDURE_CI": "0"}])
def test_elsewhere_the_reason_is_told(environment: dict[str, str]) -> None:
    with pytest.raises(pytest.skip.Exception, match="no registry"):
        skipping.cannot_run("no registry", environment)


def test_a_test_is_skipped_in_one_place() -> None:
    found = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if "pytest.skip(" in path.read_text(encoding="utf-8")
    ]
    assert set(found) == {"tests/skipping.py", "tests/tidy/test_skips.py"}


def test_the_script_of_continuous_integration_says_what_it_is() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert lines.index("export PERDURE_CI=1") < lines.index("make test")
