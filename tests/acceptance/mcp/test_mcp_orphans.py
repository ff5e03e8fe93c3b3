"""No MCP server outlives a server of ours that is killed in the middle of a call."""

import os
from pathlib import Path

from perdure.host.process import table
from tests.acceptance.mcp.mcp_project import ALLOWED, heard, local
from tests.figures import Figure
from tests.support.polling import until
from tests.support.project import make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.server_process import server_process

KILLS = int(os.environ.get("PERDURE_MCP_KILLS", "3"))


def processes(journal: Path) -> set[int]:
    """Every process that the scripted server and its helpers ever were."""
    notes = heard(journal) if journal.exists() else []
    return {note[key] for note in notes for key in ("pid", "helper") if key in note}


def survivors(journal: Path) -> set[int]:
    return {pid for pid in processes(journal) if table.read_identity(pid)}


async def test_kills_in_the_middle_of_a_call_leave_no_process(
    tmp_path: Path, provider: ScriptedProvider, figure: Figure
) -> None:
    journal = tmp_path / "journal"
    journal.touch()
    folders = make_folders(tmp_path, provider)
    folders.configure_user(
        mcp={"it": local(journal, "helper"), "other": local(journal, "helper")}, **ALLOWED
    )
    for number in range(KILLS):
        async with server_process(folders) as server:
            session = await server.api.create()
            provider.then(calls(Call("it_say", {"text": f"call {number}"})), text("later"))
            await server.api.prompt(session, "say it")
            await until(lambda wanted=f"call {number}": wanted in journal.read_text())
            assert len(survivors(journal)) >= 2
            await server.kill()
            await until(lambda: not survivors(journal))
    figure("kills in the middle of an MCP call without survivors", KILLS)
    assert len(processes(journal)) >= 2 * KILLS
