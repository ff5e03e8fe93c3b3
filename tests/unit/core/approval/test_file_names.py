"""By which names a rule means a file."""

import posixpath

import pytest

from perdure.core.approval import file_names
from perdure.core.approval import rules as permission
from perdure.core.approval.file_names import FileNames
from perdure.schema.approval.permission import Effect, Rule

ROOT = FileNames(roots=("/real/p", "/users/u/p"))
LINKS = {"/users/u/p": "/real/p", "/real/p/link": "/real/p/secrets", "/etc/link": "/data/keys"}


def real_path(path: str) -> str:
    """As on a disk with LINKS."""
    done, names = "/", path.strip("/").split("/")
    for name in names:
        done = posixpath.join(done, name)
        while done in LINKS:
            done = LINKS[done]
    return done


@pytest.mark.parametrize(
    ("pattern", "resource", "matches"),
    [
        ("secrets/*", "secrets/a", True),
        ("/real/p/secrets/*", "secrets/a", True),
        ("/users/u/p/secrets/*", "secrets/a", True),
        ("/users/*/secrets/*", "secrets/a", True),
        ("/elsewhere/secrets/*", "secrets/a", False),
        ("/real/p", ".", True),
        ("/data/*", "/data/x", True),
        ("*.pem", "/data/x.pem", True),
        ("data/*", "/data/x", False),
        ("Secrets/*", "secrets/a", False),
    ],
)
def test_a_rule_may_be_relative_or_absolute(pattern: str, resource: str, *, matches: bool) -> None:
    assert ROOT.is_named(Rule("read", pattern, "deny"), "read", resource) is matches


@pytest.mark.parametrize(
    ("pattern", "resource"),
    [
        ("Secrets/*", "sECRETS/a"),
        ("/REAL/p/Secrets/*", "secrets/a"),
        ("stra\u00dfe", "STRASSE"),
        ("caf\u00e9", "CAFE\u0301"),
    ],
)
def test_where_case_is_ignored_a_rule_ignores_it_too(pattern: str, resource: str) -> None:
    folding = FileNames(roots=ROOT.roots, ignores_case=True)
    assert folding.is_named(Rule("edit", pattern, "allow"), "edit", resource)
    assert not ROOT.is_named(Rule("edit", pattern, "allow"), "edit", resource)
    # Of commands nothing is folded: their case always matters.
    assert not folding.is_named(Rule("bash", pattern, "allow"), "bash", resource)


@pytest.mark.parametrize(
    ("pattern", "resource", "effect"),
    [
        ("link/*", "secrets/a", "deny"),
        ("/users/u/p/link/*", "secrets/a", "deny"),
        ("link", "secrets/a", "deny"),
        ("./secrets/*", "secrets/a", "deny"),
        ("src/../secrets/*", "secrets/a", "deny"),
        ("secrets", "secrets/deep/a", "deny"),
        ("secrets/", "secrets/a", "deny"),
        ("/etc/link/*", "/data/keys/a", "deny"),
        ("/etc/link", "/data/keys/a", "deny"),
        ("../q/*", "/real/q/a", "deny"),
        ("link/*.key", "secrets/a.key", "deny"),
        ("link/*.key", "secrets/a.txt", "allow"),
        ("secrets", "secrets2/a", "allow"),
        (".", "src/a", "allow"),
    ],
)
def test_a_restriction_holds_where_its_links_lead(
    pattern: str, resource: str, effect: Effect
) -> None:
    given = (Rule("*", "*", "allow"), Rule("read", pattern, "deny"))
    rules = file_names.restrict_real_paths(given, "/real/p", real_path)
    assert permission.evaluate(rules, "read", resource, ROOT) == effect


def test_what_is_allowed_does_not_follow_a_link() -> None:
    given = (Rule("*", "*", "deny"), Rule("edit", "link/*", "allow"))
    rules = file_names.restrict_real_paths(given, "/real/p", real_path)
    assert rules == given


def test_a_later_rule_still_wins_over_a_wider_one() -> None:
    given = (Rule("read", "link", "deny"), Rule("read", "secrets/public", "allow"))
    rules = file_names.restrict_real_paths(given, "/real/p", real_path)
    assert permission.evaluate(rules, "read", "secrets/public", ROOT) == "allow"
    assert permission.evaluate(rules, "read", "secrets/other", ROOT) == "deny"
