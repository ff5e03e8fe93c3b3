"""The profile of sandbox-exec for a policy. The last rule that matches a path decides."""

import re

from perdure.core.sandbox.policy import Place, make_policy
from perdure.core.sandbox.seatbelt import make_profile

POLICY = make_policy(
    (
        Place("write", "/w"),
        Place("reserve", "/w/.git/hooks"),
        Place("read", "/w/opencode.json"),
        Place("hide", "/data"),
        Place("read", "/data/tool-output"),
    )
)


def decide(profile: str, operation: str, path: str) -> str:
    """What the last rule about a path says, as sandbox-exec reads it."""
    decided = "allow"
    for line in profile.splitlines():
        found = re.fullmatch(
            r'\((allow|deny) ([a-z* -]+?)(?: \((subpath|literal) "(.*)"\))?\)', line
        )
        if found is None or operation not in found[2].split():
            continue
        inside = found[4] is None or path == found[4] or path.startswith(f"{found[4]}/")
        if inside and not (found[3] == "literal" and path != found[4]):
            decided = found[1]
    return decided


def test_the_profile_says_what_the_policy_says() -> None:
    profile = make_profile(POLICY)
    for path in ("/etc/hosts", "/w/a", "/w/.git/x", "/w/.git/hooks/x", "/w/opencode.json", "/w2"):
        assert decide(profile, "file-read*", path) == "allow"
        expected = "allow" if POLICY.access(path) == "write" else "deny"
        assert decide(profile, "file-write*", path) == expected, path
    assert decide(profile, "file-read*", "/data/perdure.db") == "deny"
    assert decide(profile, "file-read*", "/data/tool-output/x") == "allow"
    assert decide(profile, "file-write*", "/data/tool-output/x") == "deny"
    assert decide(profile, "file-write*", "/dev/null") == "allow"


def test_the_network_is_off_unless_it_is_allowed() -> None:
    assert "(deny network*)" in make_profile(POLICY)
    assert "network" not in make_profile(make_policy((), network=True))


def test_a_path_cannot_end_its_text() -> None:
    profile = make_profile(make_policy((Place("hide", '/a") (allow file-write* (subpath "/'),)))
    assert '(subpath "/a\\") (allow file-write* (subpath \\"/")' in profile
