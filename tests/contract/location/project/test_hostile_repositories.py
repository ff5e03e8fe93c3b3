"""Repositories of strangers run nothing: not when looked at, and not when changes are moved."""

import os
from pathlib import Path
from typing import Final

import pytest

from perdure.host.process.runner import LocalProcesses
from perdure.location.project import project
from perdure.location.project.git_changes import ChangesRefusedError, GitChanges
from perdure.location.project.project import Projects
from perdure.location.project.work_tree import WorkTrees
from perdure.schema.errors import ServiceUnavailableError
from tests.contract.location.opened_location import LocationFolders
from tests.figures import Figure

SETTINGS: Final = {
    "a filter that cleans": '[filter "x"]\nclean = PROGRAM',
    "a filter that smudges": '[filter "x"]\nsmudge = PROGRAM',
    "a filter process": '[filter "x"]\nprocess = PROGRAM\nrequired = true',
    "all of a filter": '[filter "x"]\nclean = PROGRAM\nsmudge = PROGRAM\nprocess = PROGRAM',
    "fsmonitor": "[core]\nfsmonitor = PROGRAM",
    "another folder of hooks": "[core]\nhooksPath = HOOKS",
    "a pager": "[core]\npager = PROGRAM\n[pager]\nrev-list = PROGRAM\napply = PROGRAM",
    "an editor": "[core]\neditor = PROGRAM\n[sequence]\neditor = PROGRAM",
    "ssh": "[core]\nsshCommand = PROGRAM\n[ssh]\nvariant = simple",
    "a program that asks for a password": "[core]\naskPass = PROGRAM",
    "a proxy": "[core]\ngitProxy = PROGRAM",
    "a program for refs of alternates": "[core]\nalternateRefsCommand = PROGRAM",
    "an external diff": "[diff]\nexternal = PROGRAM",
    "a diff driver": '[diff "x"]\ncommand = PROGRAM\ntextconv = PROGRAM',
    "a merge driver": '[merge "x"]\ndriver = PROGRAM',
    "a credential helper": "[credential]\nhelper = !PROGRAM",
    "signatures": "[gpg]\nprogram = PROGRAM\n[log]\nshowSignature = true\n[commit]\ngpgSign = true",
    "aliases": "[alias]\nrev-list = !PROGRAM\napply = !PROGRAM\nadd = !PROGRAM\nconfig = !PROGRAM",
    "a promised remote": (
        "[extensions]\npartialClone = origin\n[core]\nrepositoryformatversion = 1\n"
        '[remote "origin"]'
        "\nurl = ssh://nowhere/x\npromisor = true\nuploadpack = PROGRAM\nvcs = x"
    ),
    "a trailer": '[trailer "x"]\ncommand = PROGRAM\nkey = x',
    "other tools": '[difftool "x"]\ncmd = PROGRAM\n[mergetool "x"]\ncmd = PROGRAM',
}
HOOKS: Final = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "post-checkout"),
    *(
        "post-index-change",
        "reference-transaction",
        "post-merge",
        "pre-auto-gc",
        "fsmonitor-watchman",
    ),
)
PLACEMENTS: Final = ("config", "include", "worktree config")


def plant(folders: LocationFolders, setting: str, placement: str) -> Path:
    """Make the repository run a program in every way that the setting allows; its evidence."""
    at, root = folders.project, folders.root
    evidence = root / "executed"
    program = root / "program"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{evidence}'\ncat\n")
    program.chmod(0o755)
    hooks = root / "hooks"
    for folder in (hooks, at / ".git" / "hooks"):
        folder.mkdir(exist_ok=True)
        for name in HOOKS:
            (folder / name).write_text(program.read_text())
            (folder / name).chmod(0o755)
    text = setting.replace("PROGRAM", str(program)).replace("HOOKS", str(hooks)) + "\n"
    config = at / ".git" / "config"
    match placement:
        case "config":
            planted = config.read_text() + text
        case "include":
            (at / ".git" / "more").write_text(text)
            planted = config.read_text() + "[include]\npath = more\n"
        case _:
            (at / ".git" / "config.worktree").write_text(text)
            planted = config.read_text() + "[extensions]\nworktreeConfig = true\n"
    config.write_text(planted)
    for attributes in (at / ".gitattributes", at / ".git" / "info" / "attributes"):
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text("* filter=x diff=x merge=x\n")
    return evidence


@pytest.fixture
def other(folders: LocationFolders) -> Path:
    folders.git("init")
    folders.write(folders.project / "file.txt", "one\n")
    folders.write(folders.project / "gone.txt", "gone\n")
    folders.git("add", "-A")
    folders.git("commit", "-m", "first")
    folders.git("worktree", "add", "../other")
    return folders.root / "other"


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())
async def test_a_repository_runs_nothing(
    folders: LocationFolders, other: Path, setting: str, placement: str, figure: Figure
) -> None:
    evidence = plant(folders, setting, placement)
    folders.write(folders.project / "file.txt", "two\n")
    folders.write(folders.project / "new.txt", "new\n")
    (folders.project / "gone.txt").unlink()
    processes = LocalProcesses()
    await Projects(processes, folders.variables).resolve(str(folders.project))
    source = project.find_repository(str(folders.project))
    destination = project.find_repository(str(other))
    assert source is not None
    assert destination is not None
    trees = WorkTrees(processes, folders.variables)
    await trees.info(str(folders.project))
    try:
        listed = await trees.diff(str(folders.project), "branch")
        assert {each.path for each in listed} >= {"file.txt", "gone.txt", "new.txt"}
        assert await trees.status(str(folders.project))
    except ServiceUnavailableError:
        assert "promisor" in setting
    try:
        async with GitChanges(processes, folders.variables).capture(source) as captured:
            await captured.apply(destination)
            assert (other / "file.txt").read_text() == "two\n"
            await captured.undo_apply(destination)
            await captured.apply(destination)
            await captured.discard()
    except ChangesRefusedError:
        # A repository that git cannot read may be refused. It must not run anything either.
        assert "promisor" in setting
    assert not os.path.exists(evidence), evidence.read_text()
    figure("hostile repositories", 1)
