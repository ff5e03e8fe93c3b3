"""Trust in a project: who grants what, and how little carries over to anything else."""

import os
import stat
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.core.models import key_origins
from perdure.core.settings.settings import Settings
from perdure.location import factory
from perdure.location.config.config import Configuration
from perdure.location.config.trust import NAME, Trust, TrustFileError
from perdure.location.models.catalog import Catalog, ModelUnavailable, ResolvedModel
from perdure.schema.codec import JsonObject
from perdure.schema.models.credential import StoredKey
from perdure.schema.models.model import ModelRef
from perdure.testing import ManualClock
from tests.contract.location.opened_location import Place

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
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path, ACME_KEY="canary")
    Path(made.environment.data_dir).mkdir(parents=True, mode=0o700)
    return made


def trusted(place: Place, at: Path | None = None) -> Settings:
    """Trust what is there now, as `perdure trust` does; what then holds."""
    Trust(place.environment.data_dir).grant(place.settings(at).documents)
    return place.settings(at)


def resolve(place: Place) -> ResolvedModel | ModelUnavailable:
    catalog = Catalog(
        place.settings(),
        variables=place.variables,
        transport=place.transport,
        clock=ManualClock(),
    )
    found = catalog.resolve(MODEL)
    assert isinstance(found, ResolvedModel | ModelUnavailable)
    return found


def test_a_project_starts_nothing_until_it_is_trusted_and_again_after_a_change(
    place: Place,
) -> None:
    place.configure(FORMATTER)
    assert not place.settings().may_run_commands
    assert trusted(place).may_run_commands
    place.configure({**FORMATTER, "username": "somebody"})
    assert not place.settings().may_run_commands


def test_what_the_user_configured_needs_no_trust(place: Place) -> None:
    place.configure_user({**FORMATTER, **ACME})
    assert place.settings().may_run_commands
    assert place.settings().ungranted == ()
    assert isinstance(resolve(place), ResolvedModel)


def test_every_file_from_the_root_down_counts_by_itself(place: Place) -> None:
    inner = place.project / "inner"
    place.configure(FORMATTER)
    place.write(inner / ".opencode" / "opencode.json", FORMATTER)
    Trust(place.environment.data_dir).grant(place.settings().documents)
    assert place.settings().may_run_commands
    [left] = place.settings(inner).ungranted
    assert left.path == str(inner / ".opencode" / "opencode.json")


def test_the_same_file_in_another_directory_is_not_trusted(place: Place, tmp_path: Path) -> None:
    place.configure(FORMATTER)
    assert trusted(place).may_run_commands
    other = tmp_path / "worktree"
    place.write(other / "opencode.json", FORMATTER)
    assert not place.settings(other, root=other).may_run_commands


def test_a_directory_that_is_a_link_is_trusted_as_what_it_leads_to(
    place: Place, tmp_path: Path
) -> None:
    one, two, link = tmp_path / "one", tmp_path / "two", tmp_path / "link"
    for directory in (one, two):
        place.write(directory / "opencode.json", FORMATTER)
    link.symlink_to(one)
    found = place.settings(link, root=link)
    Trust(place.environment.data_dir).grant(found.documents)
    assert place.settings(link, root=link).may_run_commands
    assert place.settings(one, root=one).may_run_commands
    link.unlink()
    link.symlink_to(two)
    assert not place.settings(link, root=link).may_run_commands


def test_a_linked_file_is_trusted_by_what_it_holds(place: Place, tmp_path: Path) -> None:
    shared = place.write(tmp_path / "shared.json", FORMATTER)
    (place.project / "opencode.json").symlink_to(shared)
    assert trusted(place).may_run_commands
    place.write(shared, {"formatter": {"x": {"command": ["rm", "-rf", "/"]}}})
    assert not place.settings().may_run_commands


def test_what_is_granted_is_what_was_shown_and_not_what_took_its_place(place: Place) -> None:
    place.configure(FORMATTER)
    shown = place.settings().documents
    place.configure({"formatter": {"x": {"command": ["rm", "-rf", "/"]}}})
    Trust(place.environment.data_dir).grant(shown)
    assert not place.settings().may_run_commands


def test_a_file_of_the_same_size_and_time_counts_by_its_bytes(place: Place) -> None:
    path = place.configure(FORMATTER)
    assert trusted(place).may_run_commands
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b"fmt", b"bad"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not place.settings().may_run_commands


def test_a_running_location_notices_trust_and_its_end(place: Place) -> None:
    place.configure(FORMATTER)
    host = place.host()
    location = factory.open_location(place.ref, host)
    assert not location.settings.may_run_commands
    book = Trust(place.environment.data_dir)
    book.grant(location.settings.documents)
    location = factory.refresh_location(location, host)
    assert location.settings.may_run_commands
    assert factory.refresh_location(location, host) is location
    book.revoke(str(place.project))
    assert not factory.refresh_location(location, host).settings.may_run_commands


def test_a_key_of_the_environment_reaches_the_address_of_a_trusted_project_alone(
    place: Place,
) -> None:
    place.configure(ACME)
    refused = resolve(place)
    assert isinstance(refused, ModelUnavailable)
    assert "perdure trust" in refused.message
    assert "canary" not in refused.message
    trusted(place)
    assert isinstance(resolve(place), ResolvedModel)
    moved = {"provider": {"acme": {"options": {"baseURL": "https://elsewhere.example/v1"}}}}
    place.write(place.project / ".opencode" / "opencode.json", moved)
    assert isinstance(resolve(place), ModelUnavailable)


def test_a_stored_key_follows_a_trusted_project_and_nobody_else(place: Place) -> None:
    place.configure(
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
    assert key_origins.with_granted_origins(kept, place.settings()) is kept
    wider = key_origins.with_granted_origins(kept, trusted(place))
    assert wider is not None
    assert wider.origins == ("https://acme.example", "https://proxy.example")
    other = replace(kept, integration_id="other")
    assert key_origins.with_granted_origins(other, place.settings()) is other
    assert key_origins.with_granted_origins(None, place.settings()) is None


def test_a_provider_with_its_own_key_works_untrusted(place: Place) -> None:
    own = {"baseURL": "https://acme.example/v1", "apiKey": "its-own"}
    place.configure({"provider": {"acme": {**ACME["provider"]["acme"], "options": own}}})
    assert place.settings().ungranted == ()
    assert isinstance(resolve(place), ResolvedModel)


def test_directory_names_that_are_no_text_can_be_trusted(place: Place) -> None:
    odd = Path(os.fsdecode(os.fsencode(place.project) + b"/\xff\x1b[31m\n"))
    odd.mkdir()
    place.write(odd / "opencode.json", FORMATTER)
    assert trusted(place, odd).may_run_commands
    [grant] = Trust(place.environment.data_dir).grants()
    assert "\ufffd" in grant.display_path


def test_a_no_is_remembered_until_the_file_changes(place: Place) -> None:
    place.configure(FORMATTER)
    book = Trust(place.environment.data_dir)
    [document] = place.settings().documents
    book.decline([document])
    assert book.was_declined(document)
    assert not place.settings().may_run_commands
    place.configure({**FORMATTER, "username": "a"})
    assert not book.was_declined(place.settings().documents[0])
    book.grant(place.settings().documents)
    assert place.settings().may_run_commands


def test_the_record_is_private_and_a_damaged_one_grants_nothing(place: Place) -> None:
    place.configure(FORMATTER)
    trusted(place)
    path = Path(place.environment.data_dir) / NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    whole = path.read_bytes()
    for damaged in (b"", b"{", whole[:-1], whole.replace(b'"version":1', b'"version":9'), b"\xff"):
        path.write_bytes(damaged)
        assert not place.settings().may_run_commands
        with pytest.raises(TrustFileError):
            Trust(place.environment.data_dir).grant(())
    path.write_bytes(whole)
    assert place.settings().may_run_commands
    path.chmod(0o666)
    assert not place.settings().may_run_commands


def test_a_record_that_is_a_link_or_a_pipe_grants_nothing(place: Place, tmp_path: Path) -> None:
    place.configure(FORMATTER)
    trusted(place)
    path = Path(place.environment.data_dir) / NAME
    path.rename(tmp_path / "elsewhere.json")
    path.symlink_to(tmp_path / "elsewhere.json")
    assert not place.settings().may_run_commands
    path.unlink()
    os.mkfifo(path, 0o600)
    assert not place.settings().may_run_commands


def test_people_who_trust_at_the_same_time_lose_nothing(place: Place, tmp_path: Path) -> None:
    directories = [tmp_path / f"p{number}" for number in range(8)]
    for directory in directories:
        place.write(directory / "opencode.json", FORMATTER)

    def trust(directory: Path) -> None:
        found = place.settings(directory, root=directory)
        Trust(place.environment.data_dir).grant(found.documents)

    threads = [threading.Thread(target=trust, args=(each,)) for each in directories]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Trust(place.environment.data_dir).grants()) == len(directories)


def test_what_is_off_is_said_once_in_the_log(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.configure(FORMATTER)
    configuration = Configuration(place.environment)
    for _ in range(3):
        configuration.load(str(place.project), root=str(place.project))
    [said] = [record.getMessage() for record in caplog.records]
    assert "run fmt" in said
    assert "perdure trust" in said
