"""`perdure config permissions` shows and removes approvals, and the rules of a Session."""

import asyncio
import re

import pytest

from perdure.client.generated.types import SessionRule
from perdure.embedded.host import open_wire_host
from tests.contract.cli.command import MODEL, Installation, shown_until

PERMISSION = "show me a permission request"
RULES: list[SessionRule] = [
    {"action": "bash", "resource": "rm *", "effect": "deny"},
    {"action": "edit", "resource": "*", "effect": "ask", "expires": 4_102_444_800_000},
]


def test_an_approval_is_shown_and_removed(installation: Installation) -> None:
    with installation.at_terminal("run", *MODEL, PERMISSION) as process:
        shown_until(process.terminal, "[N]o: ")
        process.answer("always\n")
    shown = installation.perdure("config", "permissions").stdout
    found = re.search(r"(psv_\w+) external_directory /etc/\S* in this project", shown)
    assert found is not None, shown
    removed = installation.perdure("config", "permissions", "--remove", found[1])
    assert removed.returncode == 0
    assert found[1] not in removed.stdout
    assert found[1] not in installation.perdure("config", "permissions").stdout


def test_the_rules_of_a_session_are_shown_and_removed(installation: Installation) -> None:
    session = asyncio.run(create_session(installation))
    shown = installation.perdure("config", "permissions", "--session", session)
    lines = shown.stdout.splitlines()
    assert lines[0] == "deny bash rm *"
    assert lines[1].startswith("ask edit * until 2")
    cleared = installation.perdure("config", "permissions", "--session", session, "--clear")
    assert cleared.stdout == "no rules of its own\n"


async def create_session(installation: Installation) -> str:
    data_dir = str(installation.data_dir)
    async with open_wire_host(str(installation.project), data_dir=data_dir) as host:
        return (await host.sessions.create(permissions=RULES))["id"]


@pytest.mark.parametrize("wrong", [("--clear",), ("--remove", "x", "--session", "ses_x")])
def test_what_makes_no_sense_is_refused(installation: Installation, wrong: tuple[str, ...]) -> None:
    ran = installation.perdure("config", "permissions", *wrong)
    assert ran.returncode == 2
    assert "--session" in ran.stderr
