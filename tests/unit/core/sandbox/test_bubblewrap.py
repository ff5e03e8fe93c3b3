"""The arguments of bubblewrap for a policy."""

from perdure.core.sandbox.bubblewrap import make_arguments
from perdure.core.sandbox.policy import Place, make_policy

PLACES = (
    Place("write", "/w"),
    Place("keep", "/w/.git"),
    Place("reserve", "/w/.git/hooks"),
    Place("read", "/w/opencode.json"),
    Place("hide", "/home/me/.ssh"),
    Place("hide", "/home/me/.netrc"),
)


def test_places_are_bound_from_the_outside_in() -> None:
    words = make_arguments(
        make_policy(PLACES), directory="/w/src", is_directory=lambda path: path.endswith(".ssh")
    )
    assert " ".join(words) == (
        "--unshare-pid --unshare-ipc --unshare-net --ro-bind / / --dev /dev --proc /proc"
        " --bind-try /w /w --bind-try /w/.git /w/.git --ro-bind-try /w/opencode.json"
        " /w/opencode.json --ro-bind /dev/null /home/me/.netrc --tmpfs /home/me/.ssh"
        " --ro-bind-try /w/.git/hooks /w/.git/hooks --remount-ro /home/me/.ssh --chdir /w/src --"
    )


def test_the_network_is_shared_only_if_it_is_allowed() -> None:
    words = make_arguments(
        make_policy((), network=True), directory="/", is_directory=lambda _path: True
    )
    assert "--unshare-net" not in words


def test_everything_can_be_written_only_if_the_policy_says_so() -> None:
    words = make_arguments(
        make_policy((Place("write", "/"),)), directory="/", is_directory=lambda _path: True
    )
    assert " --bind / / " in " ".join(words)
    assert "--ro-bind" not in words
