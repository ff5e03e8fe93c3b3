"""A policy as arguments of bubblewrap, which may make namespaces where other programs may not."""

from collections.abc import Callable

from perdure.core.sandbox.policy import Place, SandboxPolicy


def make_arguments(
    policy: SandboxPolicy, *, directory: str, is_directory: Callable[[str], bool]
) -> tuple[str, ...]:
    """The arguments before those of the program. Hidden places must exist."""
    network = () if policy.network else ("--unshare-net",)
    everything = Place("write", "/") in policy.places
    root = "--bind" if everything else "--ro-bind"
    words = ["--unshare-pid", "--unshare-ipc", *network, root, "/", "/"]
    words += ["--dev", "/dev", "--proc", "/proc"]
    hidden: list[str] = []
    for place in policy.places:
        if place.path == "/":
            continue
        match place.access:
            case "write" | "keep":
                words += ["--bind-try", place.path, place.path]
            case "read" | "reserve":
                words += ["--ro-bind-try", place.path, place.path]
            case "hide":
                if is_directory(place.path):
                    words += ["--tmpfs", place.path]
                    hidden.append(place.path)
                else:
                    words += ["--ro-bind", "/dev/null", place.path]
    for path in hidden:
        words += ["--remount-ro", path]
    return (*words, "--chdir", directory, "--")
