"""The places of a sandbox: the deepest one decides."""

from perdure.core.sandbox.policy import Place, make_policy


def test_the_deepest_place_decides() -> None:
    policy = make_policy(
        (
            Place("read", "/w/.git/hooks"),
            Place("write", "/w"),
            Place("keep", "/w/.git"),
            Place("hide", "/data"),
            Place("read", "/data/outputs"),
        )
    )
    expected = {
        "/etc/hosts": "read",
        "/w/file": "write",
        "/w2/file": "read",
        "/w/.git/index": "write",
        "/w/.git/hooks/x": "read",
        "/data/perdure.db": "hide",
        "/data/outputs/x": "read",
    }
    assert {path: policy.access(path) for path in expected} == expected
    assert [place.path for place in policy.places][:2] == ["/data", "/w"]


def test_of_two_places_with_one_path_the_stricter_counts() -> None:
    places = (Place("write", "/w"), Place("hide", "/w"))
    for given in (places, places[::-1]):
        assert make_policy(given).access("/w/file") == "hide"


def test_temporary_files_go_where_a_command_may_write() -> None:
    policy = make_policy((), temporary="/t")
    assert policy.variables({"TMPDIR": "/tmp", "A": "b"}) == {"TMPDIR": "/t", "A": "b"}
    assert make_policy(()).variables({"A": "b"}) == {"A": "b"}


def test_a_file_can_be_made_writable_unless_it_is_hidden() -> None:
    places = (Place("write", "/w"), Place("read", "/w/opencode.json"), Place("hide", "/secret"))
    policy = make_policy(places, network=True, temporary="/t")
    assert policy.allowing("/w/file") is policy
    assert policy.allowing("/secret/key").access("/secret/key") == "hide"
    for path in ("/w/opencode.json", "/elsewhere/file"):
        allowing = policy.allowing(path)
        assert allowing.access(path) == "write"
        assert (allowing.network, allowing.temporary) == (True, "/t")
    assert policy.allowing("/elsewhere/file").access("/elsewhere/other") == "read"


def test_directories_around_a_protected_place_cannot_be_renamed() -> None:
    policy = make_policy(
        (Place("write", "/w"), Place("hide", "/w/a/b/data"), Place("reserve", "/w/.git/hooks"))
    )
    kept = {place.path for place in policy.places if place.access == "keep"}
    assert kept == {"/w/a", "/w/a/b", "/w/.git"}
    assert policy.access("/w/a/file") == "write"
    assert policy.access("/w/.git/hooks/x") == "read"
    assert [place.path for place in make_policy((Place("hide", "/x/y"),)).places] == ["/x/y"]
