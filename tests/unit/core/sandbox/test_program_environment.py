"""Variables of the dynamic loader reach the program inside a sandbox, and not its launcher."""

import pytest

from perdure.core.sandbox import program_environment


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "GLIBC_TUNABLES"),
        *("GCONV_PATH", "LOCPATH", "LD_DEBUG_OUTPUT", "LD_PROFILE"),
    ],
)
def test_variables_of_the_loader_are_set_inside(name: str) -> None:
    given = {"PATH": "/bin", name: "x y", "LDFLAGS": "-lm"}
    arguments, environment = program_environment.move_inside(("run", "-x"), given)
    assert arguments == ("env", f"{name}=x y", "run", "-x")
    assert environment == {"PATH": "/bin", "LDFLAGS": "-lm"}


def test_without_them_nothing_changes() -> None:
    arguments, environment = program_environment.move_inside(("run",), {"LC_ALL": "C"})
    assert (arguments, environment) == (("run",), {"LC_ALL": "C"})


def test_a_program_that_looks_like_a_setting_stays_the_program() -> None:
    arguments, environment = program_environment.move_inside(("a=b", "c"), {"LD_PRELOAD": "x"})
    assert (arguments, environment) == (("a=b", "c"), {})
