"""Trust in a project: who grants what, and how little carries over to anything else."""

import os
import shutil
import stat
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.core.approval import rules as permission
from perdure.core.models import key_origins
from perdure.core.settings.settings import Settings
from perdure.location import factory
from perdure.location.agents import agents
from perdure.location.config.config import Configuration
from perdure.location.config.trust import NAME, Trust, TrustFileError
from perdure.location.models.catalog import Catalog, ModelUnavailable, ResolvedModel
from perdure.schema.codec import JsonObject
from perdure.schema.models.credential import StoredKey
from perdure.schema.models.model import ModelRef
from perdure.testing import ManualClock
from tests.contract.location.opened_location import LocationFolders

FORMATTER: JsonObject = {"formatter": {"x": {"command": ["fmt"], "extensions": [".py"]}}}
ACME: JsonObject = {
    "provider": {
        "acme": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "https://acme.example/v1", "apiKey": "{env:ACME_KEY}"},
            "models": {"m": {}},
        }
    }
}
MODEL = ModelRef(id="m", provider_id="acme")


@pytest.fixture
def folders(tmp_path: Path) -> LocationFolders:
    made = LocationFolders(tmp_path, ACME_KEY="canary", PERDURE_TRUSTED="")
    Path(made.environment.data_dir).mkdir(parents=True, mode=0o700)
    return made


def trusted(folders: LocationFolders, at: Path | None = None) -> Settings:
    """Trust what is there now, as `perdure trust` does; what then holds."""
    Trust(folders.environment.data_dir).grant(folders.settings(at).documents)
    return folders.settings(at)


def resolve(folders: LocationFolders) -> ResolvedModel | ModelUnavailable:
    catalog = Catalog(
        folders.settings(),
        variables=folders.variables,
        transport=folders.transport,
        clock=ManualClock(),
    )
    found = catalog.resolve(MODEL)
    assert isinstance(found, ResolvedModel | ModelUnavailable)
    return found


def test_a_project_starts_nothing_until_it_is_trusted_and_again_after_a_change(
    folders: LocationFolders,
) -> None:
    folders.configure(FORMATTER)
    assert not folders.settings().is_trusted
    assert trusted(folders).is_trusted
    folders.configure({**FORMATTER, "username": "somebody"})
    assert folders.settings().is_trusted
    folders.configure({**FORMATTER, "model": "acme/m"})
    assert not folders.settings().is_trusted


def test_what_the_user_configured_needs_no_trust(folders: LocationFolders) -> None:
    folders.configure_user({**FORMATTER, **ACME})
    assert folders.settings().is_trusted
    assert folders.settings().ungranted == ()
    assert isinstance(resolve(folders), ResolvedModel)


def test_every_file_from_the_root_down_counts_by_itself(folders: LocationFolders) -> None:
    inner = folders.project / "inner"
    folders.configure(FORMATTER)
    folders.write(inner / ".opencode" / "opencode.json", FORMATTER)
    Trust(folders.environment.data_dir).grant(folders.settings().documents)
    assert folders.settings().is_trusted
    [left] = folders.settings(inner).ungranted
    assert left.path == str(inner / ".opencode" / "opencode.json")


def test_the_same_file_in_another_directory_is_not_trusted(
    folders: LocationFolders, tmp_path: Path
) -> None:
    folders.configure(FORMATTER)
    assert trusted(folders).is_trusted
    other = tmp_path / "worktree"
    folders.write(other / "opencode.json", FORMATTER)
    assert not folders.settings(other, root=other).is_trusted


def test_a_directory_that_is_a_link_is_trusted_as_what_it_leads_to(
    folders: LocationFolders, tmp_path: Path
) -> None:
    one, two, link = tmp_path / "one", tmp_path / "two", tmp_path / "link"
    for directory in (one, two):
        folders.write(directory / "opencode.json", FORMATTER)
    link.symlink_to(one)
    found = folders.settings(link, root=link)
    Trust(folders.environment.data_dir).grant(found.documents)
    assert folders.settings(link, root=link).is_trusted
    assert folders.settings(one, root=one).is_trusted
    link.unlink()
    link.symlink_to(two)
    assert not folders.settings(link, root=link).is_trusted


def test_a_linked_file_is_trusted_by_what_it_holds(
    folders: LocationFolders, tmp_path: Path
) -> None:
    shared = folders.write(tmp_path / "shared.json", FORMATTER)
    (folders.project / "opencode.json").symlink_to(shared)
    assert trusted(folders).is_trusted
    folders.write(shared, {"formatter": {"x": {"command": ["rm", "-rf", "/"]}}})
    assert not folders.settings().is_trusted


def test_what_is_granted_is_what_was_shown_and_not_what_took_its_place(
    folders: LocationFolders,
) -> None:
    folders.configure(FORMATTER)
    shown = folders.settings().documents
    folders.configure({"formatter": {"x": {"command": ["rm", "-rf", "/"]}}})
    Trust(folders.environment.data_dir).grant(shown)
    assert not folders.settings().is_trusted


def test_a_file_of_the_same_size_and_time_counts_by_its_bytes(folders: LocationFolders) -> None:
    path = folders.configure(FORMATTER)
    assert trusted(folders).is_trusted
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"fmt", b"bad"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not folders.settings().is_trusted


def test_a_running_location_notices_trust_and_its_end(folders: LocationFolders) -> None:
    folders.configure(FORMATTER)
    host = folders.host()
    location = factory.open_location(folders.ref, host)
    assert not location.settings.is_trusted
    book = Trust(folders.environment.data_dir)
    book.grant(location.settings.documents)
    location = factory.refresh_location(location, host)
    assert location.settings.is_trusted
    assert factory.refresh_location(location, host) is location
    book.revoke(str(folders.project))
    assert not factory.refresh_location(location, host).settings.is_trusted


def test_a_key_of_the_environment_reaches_the_address_of_a_trusted_project_alone(
    folders: LocationFolders,
) -> None:
    folders.configure(ACME)
    refused = resolve(folders)
    assert isinstance(refused, ModelUnavailable)
    assert "canary" not in refused.message
    trusted(folders)
    assert isinstance(resolve(folders), ResolvedModel)
    moved = {"provider": {"acme": {"options": {"baseURL": "https://elsewhere.example/v1"}}}}
    folders.write(folders.project / ".opencode" / "opencode.json", moved)
    assert isinstance(resolve(folders), ResolvedModel)
    assert "elsewhere" not in repr(folders.settings().providers["acme"])


def test_a_stored_key_follows_a_trusted_project_and_nobody_else(folders: LocationFolders) -> None:
    folders.configure(
        {"provider": {"acme": {"options": {"baseURL": "https://proxy.example/v1"}, "models": {}}}}
    )
    kept = StoredKey(
        id="cred_1",
        integration_id="acme",
        label="",
        origins=("https://acme.example",),
        time_created=0,
        key="canary",
    )
    assert key_origins.with_granted_origins(kept, folders.settings()) is kept
    wider = key_origins.with_granted_origins(kept, trusted(folders))
    assert wider is not None
    assert wider.origins == ("https://acme.example", "https://proxy.example")
    other = replace(kept, integration_id="other")
    assert key_origins.with_granted_origins(other, folders.settings()) is other
    assert key_origins.with_granted_origins(None, folders.settings()) is None


def test_a_provider_with_its_own_key_needs_trust_too(folders: LocationFolders) -> None:
    own = {"baseURL": "https://acme.example/v1", "apiKey": "its-own"}
    folders.configure({"provider": {"acme": {**ACME["provider"]["acme"], "options": own}}})
    assert isinstance(resolve(folders), ModelUnavailable)
    trusted(folders)
    assert isinstance(resolve(folders), ResolvedModel)


def test_directory_names_that_are_no_text_can_be_trusted(folders: LocationFolders) -> None:
    odd = Path(os.fsdecode(os.fsencode(folders.project) + b"/\xff\x1b[31m\n"))
    odd.mkdir()
    folders.write(odd / "opencode.json", FORMATTER)
    assert trusted(folders, odd).is_trusted
    [grant] = Trust(folders.environment.data_dir).grants()
    assert "\ufffd" in grant.display_path


def test_a_no_is_remembered_until_the_file_changes(folders: LocationFolders) -> None:
    folders.configure(FORMATTER)
    book = Trust(folders.environment.data_dir)
    [document] = folders.settings().documents
    book.decline([document])
    assert book.was_declined(document)
    assert not folders.settings().is_trusted
    folders.configure({**FORMATTER, "model": "acme/m"})
    assert not book.was_declined(folders.settings().documents[0])
    book.grant(folders.settings().documents)
    assert folders.settings().is_trusted


def test_the_record_is_private_and_a_damaged_one_grants_nothing(folders: LocationFolders) -> None:
    folders.configure(FORMATTER)
    trusted(folders)
    path = Path(folders.environment.data_dir) / NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    whole = path.read_bytes()
    for damaged in (b"", b"{", whole[:-1], whole.replace(b'"version":2', b'"version":9'), b"\xff"):
        path.write_bytes(damaged)
        assert not folders.settings().is_trusted
        with pytest.raises(TrustFileError):
            Trust(folders.environment.data_dir).grant(())
    path.write_bytes(whole)
    assert folders.settings().is_trusted
    path.chmod(0o666)
    assert not folders.settings().is_trusted


def test_a_record_that_is_a_link_or_a_pipe_grants_nothing(
    folders: LocationFolders, tmp_path: Path
) -> None:
    folders.configure(FORMATTER)
    trusted(folders)
    path = Path(folders.environment.data_dir) / NAME
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    assert not folders.settings().is_trusted
    path.unlink()
    os.mkfifo(path, 0o600)
    assert not folders.settings().is_trusted


def test_people_who_trust_at_the_same_time_lose_nothing(
    folders: LocationFolders, tmp_path: Path
) -> None:
    directories = [tmp_path / f"p{number}" for number in range(8)]
    for directory in directories:
        folders.write(directory / "opencode.json", FORMATTER)

    def trust(directory: Path) -> None:
        found = folders.settings(directory, root=directory)
        Trust(folders.environment.data_dir).grant(found.documents)

    threads = [threading.Thread(target=trust, args=(each,)) for each in directories]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Trust(folders.environment.data_dir).grants()) == len(directories)


def test_what_is_off_is_said_once_in_the_log(
    folders: LocationFolders, caplog: pytest.LogCaptureFixture
) -> None:
    folders.configure(FORMATTER)
    configuration = Configuration(folders.environment)
    for _ in range(3):
        configuration.load(str(folders.project), root=str(folders.project))
    [said] = [record.getMessage() for record in caplog.records]
    assert "run fmt" in said
    assert "perdure trust" in said


def test_work_trees_of_one_repository_share_trust_and_a_copy_has_none(
    folders: LocationFolders, tmp_path: Path
) -> None:
    folders.configure(FORMATTER)
    folders.git("init", "-q", ".")
    folders.git("add", "-A")
    folders.git("commit", "-q", "-m", "first")
    tree, copy = tmp_path / "tree", tmp_path / "copy"
    folders.git("worktree", "add", "-q", str(tree))
    shutil.copytree(folders.project, copy, symlinks=True)
    assert trusted(folders).is_trusted
    assert folders.settings(tree, root=tree).is_trusted
    assert not folders.settings(copy, root=copy).is_trusted
    (tmp_path / "claims").mkdir()
    folders.write(tmp_path / "claims" / "opencode.json", FORMATTER)
    (tmp_path / "claims" / ".git").write_text(f"gitdir: {folders.project}/.git\n")
    claims = tmp_path / "claims"
    assert not folders.settings(claims, root=claims).is_trusted


def test_a_moved_project_asks_once(folders: LocationFolders, tmp_path: Path) -> None:
    folders.configure(FORMATTER)
    assert trusted(folders).is_trusted
    moved = folders.project.rename(tmp_path / "moved")
    assert not folders.settings(moved, root=moved).is_trusted
    Trust(folders.environment.data_dir).grant(folders.settings(moved, root=moved).documents)
    assert folders.settings(moved, root=moved).is_trusted


def test_a_config_directory_that_links_to_a_trusted_one_is_not_trusted(
    folders: LocationFolders, tmp_path: Path
) -> None:
    folders.configure(FORMATTER, name=".opencode/opencode.json")
    assert trusted(folders).is_trusted
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / ".opencode").symlink_to(folders.project / ".opencode")
    assert not folders.settings(evil, root=evil).is_trusted


@pytest.mark.parametrize(
    ("ahead", "counts"),
    [
        ("*", True),
        ("{project}", True),
        ("/nowhere:{root}", True),
        ("{root}/link", True),
        ("", False),
        ("/nowhere", False),
        ("{project}/inner", False),
        ("{project}x", False),
        ("project", False),
        ("./*", False),
    ],
)
def test_directories_can_be_trusted_ahead_whatever_they_hold(
    folders: LocationFolders, ahead: str, *, counts: bool
) -> None:
    (folders.root / "link").symlink_to(folders.project)
    named = ahead.format(project=folders.project, root=folders.root)
    folders.variables["PERDURE_TRUSTED"] = named
    for value in (FORMATTER, ACME):
        folders.configure(value)
        folders.write(folders.project / ".opencode" / "agents" / "a.md", "Be kind.")
        assert folders.settings().is_trusted is counts


def test_grants_of_the_first_version_count_no_longer_and_are_replaced(
    folders: LocationFolders,
) -> None:
    folders.configure(FORMATTER)
    path = Path(folders.environment.data_dir) / NAME
    path.write_bytes(b'{"version":1,"grants":[{"path":"L2E=","sha256":"x"}]}')
    path.chmod(0o600)
    assert not folders.settings().is_trusted
    assert Trust(folders.environment.data_dir).grants() == ()
    assert trusted(folders).is_trusted
    assert b'"version":2' in path.read_bytes()


def test_a_command_file_of_a_project_counts_after_trust(folders: LocationFolders) -> None:
    path = folders.project / ".opencode" / "commands" / "go.md"
    folders.write(path, "Run !`id`")

    def names() -> set[str]:
        location = factory.open_location(folders.ref, folders.host())
        return {command.name for command in location.commands.list()}

    location = factory.open_location(folders.ref, folders.host())
    [document] = location.commands.untrusted()
    assert "go" not in names()
    Trust(folders.environment.data_dir).grant([document])
    assert "go" in names()
    folders.write(path, "Run !`rm -rf /`")
    assert "go" not in names()


def managed(folders: LocationFolders, value: JsonObject | str) -> Settings:
    """The settings on a machine whose administrator wrote this."""
    folders.write(folders.root / "managed" / "opencode.json", value)
    there = replace(folders.environment, managed_dir=str(folders.root / "managed"))
    return Configuration(there).load(str(folders.project), root=str(folders.project))


def test_the_managed_configuration_overrides_the_users_and_bounds_its_rules(
    folders: LocationFolders,
) -> None:
    folders.configure_user({"model": "a/b", "permission": {"bash": "allow"}})
    found = managed(folders, {"model": "c/d", "permission": {"bash": "deny"}})
    assert found.model == ModelRef(id="d", provider_id="c")
    rules = agents.load(found, folders.environment).rules("build")
    assert permission.evaluate(rules, "bash", "ls") == "deny"


def test_a_managed_configuration_that_cannot_be_used_asks_about_everything(
    folders: LocationFolders,
) -> None:
    found = managed(folders, "{ broken")
    rules = agents.load(found, folders.environment).rules("build")
    assert permission.evaluate(rules, "read", "a.py") == "ask"
