"""The `sandbox` of a configuration, and what the managed configuration leaves of it."""

import pytest

from perdure.core.sandbox import host_list, settings
from perdure.core.sandbox.settings import SandboxSettings
from perdure.schema.codec import JsonObject


def reaches(found: SandboxSettings, wanted: str) -> bool:
    return found.hosts is not None and found.hosts.covers(host_list.parse_target(wanted))


def test_without_configuration_commands_write_in_the_workspace_and_have_no_network() -> None:
    assert settings.merge([]) == SandboxSettings()
    assert (SandboxSettings().mode, SandboxSettings().network) == ("workspace-write", False)


def test_the_network_is_off_on_or_a_list_of_hosts() -> None:
    assert settings.merge([{"network": False}]).hosts is None
    assert settings.merge([{"network": True}]).network
    listed = settings.merge([{"network": True}, {"network": {"allow": ["docs.python.org"]}}])
    assert not listed.network
    assert reaches(listed, "docs.python.org:443")
    assert not reaches(listed, "example.com:443")
    assert settings.merge([{"network": {}}]).hosts == host_list.HostList()


@pytest.mark.parametrize(
    ("managed", "user", "mode"),
    [
        ("read-only", "danger-full-access", "read-only"),
        ("workspace-write", "danger-full-access", "workspace-write"),
        ("workspace-write", "read-only", "read-only"),
        ("read-only", None, "read-only"),
    ],
)
def test_the_managed_mode_bounds_the_users(managed: str, user: str | None, mode: str) -> None:
    own: JsonObject = {} if user is None else {"mode": user}
    assert settings.merge([own], [{"mode": managed}]).mode == mode


def test_the_managed_network_bounds_the_users() -> None:
    off: JsonObject = {"network": False}
    some: JsonObject = {"network": {"allow": ["docs.python.org"]}}
    both: JsonObject = {"network": {"allow": ["docs.python.org", "example.com"]}}
    full: JsonObject = {"network": True}
    for user in (some, full):
        found = settings.merge([user], [off])
        assert (found.network, found.hosts) == (False, None)
    for user in (both, full):
        found = settings.merge([user], [some])
        assert not found.network
        assert reaches(found, "docs.python.org:443")
        assert not reaches(found, "example.com:443")
    assert settings.merge([full], [full]).network
    assert reaches(settings.merge([], [some]), "docs.python.org:443")


def test_further_bounds_of_the_managed_configuration() -> None:
    found = settings.merge(
        [{"ask": False, "hidden": ["~/b"], "writable": ["/"]}],
        [{"ask": True, "hidden": ["~/a"], "writable": []}],
    )
    assert found == SandboxSettings(ask=True, hidden=("~/a", "~/b"), writable=())
