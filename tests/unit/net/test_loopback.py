"""What leads to this machine, and who takes which of it for enough."""

import pytest
from msgspec.structs import replace

from perdure.core.models import selection
from perdure.core.models.catalog import local_provider
from perdure.net import loopback


@pytest.mark.parametrize(
    ("host", "serves_without_password", "is_attached_here", "needs_no_proxy", "costs_nothing"),
    [
        ("localhost", True, True, True, True),
        ("LocalHost", True, True, True, True),
        ("127.0.0.1", True, True, True, True),
        ("::1", True, True, True, True),
        ("127.0.0.2", False, False, True, True),
        ("127.255.255.254", False, False, True, True),
        ("0:0:0:0:0:0:0:1", False, False, True, True),
        ("a.localhost", False, False, True, False),
        ("A.LOCALHOST", False, False, True, False),
        ("localhost.", False, False, False, False),
        ("localhost.example.com", False, False, False, False),
        ("127.0.0.1.example.com", False, False, False, False),
        ("nolocalhost", False, False, False, False),
        ("0.0.0.0", False, False, False, False),
        ("::", False, False, False, False),
        ("128.0.0.1", False, False, False, False),
        ("192.168.0.1", False, False, False, False),
        ("127.1", False, False, False, False),
        ("0x7f.0.0.1", False, False, False, False),
        ("example.com", False, False, False, False),
        ("", False, False, False, False),
    ],
)
def test_who_takes_a_host_for_this_machine(
    host: str,
    serves_without_password: bool,
    is_attached_here: bool,
    needs_no_proxy: bool,
    costs_nothing: bool,
) -> None:
    url = f"http://[{host}]:80/v1" if ":" in host else f"http://{host}:80/v1"
    model = replace(local_provider("example", url, {"m": 0}).models["m"], cost=())
    assert loopback.is_loopback_name(host) is serves_without_password
    assert loopback.is_loopback_url(url) is is_attached_here
    assert loopback.is_loopback_domain(host) is needs_no_proxy
    assert selection.is_free(model) is costs_nothing


def test_a_name_in_brackets_is_one_of_a_url_and_of_a_host_header() -> None:
    assert {"localhost", "127.0.0.1", "[::1]"} == loopback.AUTHORITIES
    assert loopback.is_loopback_name("[::1]")
    assert not loopback.is_loopback("[::1]")
