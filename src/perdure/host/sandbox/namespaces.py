"""Moves this process into namespaces of its own: files, processes, network, and message queues.

Three processes run: the first waits and exits with the command's code, the second is the first of
the PID namespace and collects orphans, and the third is the command. All are in one group, so
ending the group ends the namespace.

Invariant: places are reached by descriptors of paths without links. Another process that runs in
the workspace may replace a directory by a link at any time, and must not choose what is mounted.
"""

import os
import signal
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NoReturn, Protocol

from perdure.host.sandbox import kernel, privileges

PlaceWord = tuple[str, str]
"""A letter and a path: see host.sandbox.launcher."""

DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
FAILED_STATUS: Final = 125

_LINKS: Final = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
)
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_LEFT_SECONDS: Final = 30
"""How long processes may go on after the command. The group is ended sooner, by the process that
started it, unless that has died."""


class ListenerOffer(Protocol):
    """See host.sandbox.proxy_listener."""

    def make_listener(self) -> None: ...
    def close(self) -> None: ...


def enter(
    places: Sequence[PlaceWord],
    program: bytes,
    *,
    own_network: bool,
    offer: ListenerOffer | None = None,
) -> None:
    """Return in the process of the command, which is not the process that called.

    The process that collects orphans keeps the offer open.
    """
    network = kernel.NEW_NETWORK if own_network else 0
    _unshare(kernel.NEW_MOUNTS | kernel.NEW_PIDS | kernel.NEW_IPC | network)
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in _ENDING]
    heard, told = os.pipe()
    first = os.fork()
    if first:
        os.close(told)
        if offer is not None:
            offer.close()
        _pass_on(first, heard)
    os.close(heard)
    if own_network:
        # Let the command reach servers that it starts itself.
        kernel.start_loopback()
    if offer is not None:
        offer.make_listener()
    _arrange_files(places)
    privileges.give_up(program)
    command = os.fork()
    if command:
        _collect(command, told)
    os.close(told)
    if offer is not None:
        offer.close()
    for number, handler in before:
        signal.signal(number, signal.SIG_IGN if handler == signal.SIG_IGN else signal.SIG_DFL)


def keep(offer: ListenerOffer) -> None:
    """Make the listener, and return in a child; this process keeps the offer until that ends.

    For namespaces that bubblewrap made.
    """
    offer.make_listener()
    command = os.fork()
    if not command:
        offer.close()
        return
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    _, status = os.waitpid(command, 0)
    os._exit(_exit_code(status))


def _unshare(kinds: int) -> None:
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        # Without users of its own, so that files of other users keep their owners.
        with suppress(PermissionError):
            kernel.unshare(kinds)
            return
    kernel.unshare(kinds | kernel.NEW_USERS)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _pass_on(first: int, heard: int) -> NoReturn:
    """Wait for the exit code of the command and exit with it."""
    told = os.read(heard, 16)
    if told:
        os._exit(int(told))
    _, status = os.waitpid(first, 0)
    os._exit(_exit_code(status))


def _collect(command: int, told: int) -> NoReturn:
    """Collect ended processes as long as there are any; report the end of the command."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    code = FAILED_STATUS
    while True:
        try:
            ended, status = os.wait()
        except ChildProcessError:
            # Nothing is left, so this process is not taken for something that still runs.
            os._exit(code)
        if ended != command:
            continue
        code = _exit_code(status)
        if _is_left():
            os.write(told, b"%d" % code)
            os.close(told)
            signal.signal(signal.SIGALRM, lambda _number, _frame: os._exit(FAILED_STATUS))
            signal.alarm(_LEFT_SECONDS)


def _is_left() -> bool:
    """Whether a process still runs; those that have ended are collected."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _arrange_files(places: Sequence[PlaceWord]) -> None:
    kernel.mount("none", "/", kernel.PRIVATE)
    for kind, path in places:
        if kind == "d":
            _make_directory(path)
    trees = [_clone(path) if kind != "h" else None for kind, path in places]
    devices = [(name, _clone(f"/dev/{name}")) for name in DEVICES]
    limits = kernel.NO_SETUID | kernel.NO_DEVICES
    everything = ("w", "/") in places
    _restrict("/", limits if everything else limits | kernel.READ_ONLY)
    nothing = _make_nothing()
    _make_devices(devices)
    kernel.mount("proc", "/proc", kernel.READ_ONLY | limits | kernel.NO_EXECUTION)
    hidden: list[str] = []
    # Names of keys in the kernel.
    _hide("/proc/keys", nothing, hidden)
    filled = [path for kind, path in places if kind != "h"]
    for (kind, path), tree in zip(places, trees, strict=True):
        if kind == "h":
            within = any(inner.startswith(f"{path}/") for inner in filled)
            _hide(path, None if within else nothing, hidden)
        elif tree is not None and path != "/":
            kernel.restrict_tree(tree, limits | (kernel.READ_ONLY if kind in "rd" else 0))
            _attach(tree, path, ("/dev", *hidden))
    for path in hidden:
        _restrict(path, kernel.READ_ONLY)


def _make_directory(path: str) -> None:
    outer = kernel.open_path(os.path.dirname(path))
    if outer is not None:
        with suppress(FileExistsError, PermissionError):
            os.mkdir(os.path.basename(path), 0o755, dir_fd=outer)
        os.close(outer)


def _make_nothing() -> int:
    """A directory without anything, below what is mounted over it next.

    Copies of it hide places: a file system for each place would take a command longer to set up and
    to leave than everything else.
    """
    limits = kernel.READ_ONLY | kernel.NO_SETUID | kernel.NO_DEVICES
    kernel.mount("tmpfs", "/dev", limits, "mode=755")
    return os.open("/dev", os.O_PATH | os.O_CLOEXEC)


def _make_devices(devices: Sequence[tuple[str, int | None]]) -> None:
    kernel.mount("tmpfs", "/dev", kernel.NO_SETUID, "mode=755")
    for name, tree in devices:
        if tree is not None:
            os.close(os.open(f"/dev/{name}", os.O_WRONLY | os.O_CREAT, 0o644))
            _attach(tree, f"/dev/{name}", ())
    for name, target in _LINKS:
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/pts")
    kernel.mount("devpts", "/dev/pts", kernel.NO_SETUID, "newinstance,ptmxmode=0666,mode=620")
    os.mkdir("/dev/shm")
    kernel.mount("tmpfs", "/dev/shm", kernel.NO_SETUID | kernel.NO_DEVICES, "mode=1777")


def _hide(path: str, nothing: int | None, hidden: list[str]) -> None:
    """Put an empty directory or file over a place; a directory of its own without `nothing`."""
    place = kernel.open_path(path)
    if place is None:
        return
    if stat.S_ISDIR(os.fstat(place).st_mode) and nothing is not None:
        _attach_copy(kernel.clone_tree(nothing, whole=False), place)
    elif stat.S_ISDIR(os.fstat(place).st_mode):
        limits = kernel.NO_SETUID | kernel.NO_DEVICES
        kernel.mount("tmpfs", f"/proc/self/fd/{place}", limits, "mode=755")
        hidden.append(path)
    elif (empty := _clone("/dev/null")) is not None:
        _attach_copy(empty, place)
    os.close(place)


def _attach_copy(tree: int, place: int) -> None:
    kernel.attach_tree(tree, place)
    os.close(tree)


def _clone(path: str) -> int | None:
    """A detached copy of the mounts at a path; None if there is nothing."""
    place = kernel.open_path(path)
    if place is None:
        return None
    try:
        return kernel.clone_tree(place)
    finally:
        os.close(place)


def _attach(tree: int, path: str, empty: Sequence[str]) -> None:
    """Put a copy over a path. In a place that was made empty, the path is made first."""
    if any(path.startswith(f"{outer}/") for outer in empty) and not os.path.lexists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
    place = kernel.open_path(path)
    if place is None:
        raise FileNotFoundError(2, "it was moved away meanwhile", path)
    kernel.attach_tree(tree, place)
    os.close(place)
    os.close(tree)


def _restrict(path: str, attributes: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    kernel.restrict_tree(place, attributes)
    os.close(place)


def _write(path: str, text: str) -> None:
    # Not as a text file: Python would load the encoding, which may be out of reach by now.
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    os.write(file, text.encode())
    os.close(file)
