"""A program: restricts itself, then becomes the command that its arguments name.

    launcher.py WALL NETWORK FILTER DIRECTORY [PLACE]... -- PROGRAM [ARGUMENT]...

WALL is `namespaces` or `landlock`, FILTER a seccomp program in hexadecimal digits, and a PLACE a
letter (write, read, hide, keep) before a path, outer places first. It is started as a file without
the package, so that it costs no more than Python itself, and imports nothing of it.

With namespaces three processes run: this one waits and exits with the command's code, the first
process of the PID namespace collects orphans, and the third is the command. All are in one group,
so ending the group ends the namespace. Nothing of a command is started if a step fails.
"""

import ctypes
import os
import signal
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NoReturn

FAILED_STATUS: Final = 125

_libc: Final = ctypes.CDLL(None, use_errno=True)

_NEW_MOUNTS: Final = 0x00020000
_NEW_IPC: Final = 0x08000000
_NEW_USERS: Final = 0x10000000
_NEW_PIDS: Final = 0x20000000
_NEW_NETWORK: Final = 0x40000000

_OPEN_TREE: Final = 428
_MOVE_MOUNT: Final = 429
_MOUNT_SETATTR: Final = 442
_CREATE_RULESET: Final = 444
_ADD_RULE: Final = 445
_RESTRICT_SELF: Final = 446

_HERE: Final = -100
_RECURSIVE: Final = 0x8000
_EMPTY_PATH: Final = 0x1000
_CLONE: Final = 1
_CLOSE_ON_EXEC: Final = 0o2000000
_FROM_EMPTY_PATH: Final = 4
_READ_ONLY: Final = 1
_NO_SETUID: Final = 2
_NO_DEVICES: Final = 4
_NO_EXECUTION: Final = 8
_PRIVATE: Final = 0x44000

_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS: Final = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
)
_KEPT_CAPABILITIES: Final = 0b1101_1011
"""Those about the owners of files and about changing to another user."""
_CAPABILITY_MAX: Final = 63
_CAPABILITY_VERSION: Final = 0x20080522
_NO_NEW_PRIVILEGES: Final = 38
_SET_SECCOMP: Final = 22
_DROP_BOUNDING: Final = 24
_AMBIENT: Final = 47
_CLEAR_ALL: Final = 4
_FILTER_MODE: Final = 2
_INSTRUCTION_BYTES: Final = 8

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_RESET: Final = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores and a command must not."""

Place = tuple[str, str]


def main(arguments: Sequence[str]) -> NoReturn:
    wall, network, program, directory, *rest = arguments
    end = rest.index("--")
    places = [(place[0], place[1:]) for place in rest[:end]]
    command = rest[end + 1 :]
    try:
        if wall == "namespaces":
            _enter_namespaces(places, network == "network", bytes.fromhex(program))
        else:
            if wall == "landlock":
                _restrict_files(places)
            _give_up_privileges(bytes.fromhex(program))
        os.chdir(directory)
    except OSError as error:
        _fail(f"the sandbox could not be made: {error}")
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        _fail(f"{command[0]}: {error.strerror}", 127 if error.errno == 2 else 126)


def _fail(message: str, status: int = FAILED_STATUS) -> NoReturn:
    sys.stderr.write(f"perdure: {message}\n")
    sys.stderr.flush()
    os._exit(status)


# ---- namespaces -----------------------------------------------------------------------------


def _enter_namespaces(places: Sequence[Place], network: bool, program: bytes) -> None:
    """Return in the process of the command, which is not the process that called."""
    _unshare(_NEW_MOUNTS | _NEW_PIDS | _NEW_IPC | (0 if network else _NEW_NETWORK))
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in _ENDING]
    heard, told = os.pipe()
    first = os.fork()
    if first:
        os.close(told)
        _pass_on(first, heard)
    os.close(heard)
    if not network:
        _start_loopback()
    _arrange_files(places)
    _give_up_privileges(program)
    command = os.fork()
    if command:
        _collect(command, told)
    os.close(told)
    for number, handler in before:
        signal.signal(number, signal.SIG_IGN if handler == signal.SIG_IGN else signal.SIG_DFL)


def _unshare(kinds: int) -> None:
    user, group = os.geteuid(), os.getegid()
    if user == 0 and _libc.unshare(kinds) == 0:
        return
    _check(_libc.unshare(kinds | _NEW_USERS), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def _pass_on(first: int, heard: int) -> NoReturn:
    """Wait for the exit code of the command and exit with it."""
    told = os.read(heard, 16)
    if told:
        os._exit(int(told))
    _, status = os.waitpid(first, 0)
    os._exit(_exit_code(status) or FAILED_STATUS)


def _collect(command: int, told: int) -> NoReturn:
    """Collect ended processes as long as there are any; report the end of the command."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    while True:
        try:
            ended, status = os.wait()
        except ChildProcessError:
            os._exit(0)
        if ended == command:
            os.write(told, b"%d" % _exit_code(status))
            os.close(told)


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _start_loopback() -> None:
    """Let the command reach servers that it starts itself."""
    import fcntl
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        request = b"lo".ljust(16, b"\0") + (0x1 | 0x40).to_bytes(2, sys.byteorder) + bytes(22)
        fcntl.ioctl(made, 0x8914, request)


def _arrange_files(places: Sequence[Place]) -> None:
    _mount("none", "/", _PRIVATE)
    trees = [(kind, path, _clone(path)) for kind, path in places if kind != "h"]
    trees = [tree for tree in trees if tree[2] is not None]
    devices = [(name, _clone(f"/dev/{name}")) for name in _DEVICES]
    limits = _NO_SETUID | _NO_DEVICES
    everything = ("w", "/") in places
    _set_attributes(_HERE, "/", limits if everything else limits | _READ_ONLY)
    _make_devices(devices)
    _mount("proc", "/proc", _READ_ONLY | limits | _NO_EXECUTION)
    hidden: list[str] = []
    attach = {(kind, path): tree for kind, path, tree in trees}
    for place in places:
        kind, path = place
        tree = attach.get(place)
        if kind == "h":
            _hide(path, hidden)
        elif tree is not None and path != "/":
            _set_attributes(tree, "", limits | (_READ_ONLY if kind == "r" else 0))
            _attach(tree, path)
    for path in hidden:
        _set_attributes(_HERE, path, _READ_ONLY)


def _make_devices(devices: Sequence[tuple[str, int | None]]) -> None:
    _mount("tmpfs", "/dev", _NO_SETUID, "mode=755")
    for name, tree in devices:
        if tree is not None:
            _attach(tree, f"/dev/{name}")
    for name, target in _LINKS:
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/pts")
    _mount("devpts", "/dev/pts", _NO_SETUID, "newinstance,ptmxmode=0666,mode=620")
    os.mkdir("/dev/shm")
    _mount("tmpfs", "/dev/shm", _NO_SETUID | _NO_DEVICES, "mode=1777")


def _hide(path: str, hidden: list[str]) -> None:
    """Put an empty directory or file over a place."""
    if os.path.isdir(path):
        _mount("tmpfs", path, _NO_SETUID | _NO_DEVICES, "mode=755")
        hidden.append(path)
    elif os.path.exists(path):
        empty = _clone("/dev/null")
        if empty is not None:
            _attach(empty, path)


def _clone(path: str) -> int | None:
    """A detached copy of the mounts at a path; None if there is nothing."""
    flags = _CLONE | _CLOSE_ON_EXEC | _RECURSIVE
    tree = _libc.syscall(_OPEN_TREE, _HERE, os.fsencode(path), flags)
    if tree < 0 and ctypes.get_errno() in (2, 20):
        return None
    return _check(tree, path)


def _attach(tree: int, path: str) -> None:
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.mkdir(path)
        else:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644))
    _check(_libc.syscall(_MOVE_MOUNT, tree, b"", _HERE, os.fsencode(path), _FROM_EMPTY_PATH), path)
    os.close(tree)


def _set_attributes(tree: int, path: str, attributes: int) -> None:
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    flags = _RECURSIVE | (0 if path else _EMPTY_PATH)
    made = _libc.syscall(
        _MOUNT_SETATTR, tree, os.fsencode(path), flags, ctypes.byref(wanted), ctypes.sizeof(wanted)
    )
    _check(made, path)


def _mount(kind: str, target: str, flags: int, options: str = "") -> None:
    source, place, given = kind.encode(), os.fsencode(target), options.encode()
    _check(_libc.mount(source, place, source, ctypes.c_ulong(flags), given), target)


# ---- Landlock -------------------------------------------------------------------------------


_READ_RIGHTS: Final = 0b1101
"""Execute, read a file, list a directory."""
_LIST_RIGHT: Final = 0b1000
_DEVICE_RIGHTS: Final = 0b0110
_FILE_RIGHTS: Final = 0b1_1100_0000_0000_0111
"""The rights that a rule about a file may name."""
_TRUNCATE: Final = 1 << 14
_DEVICE_CONTROL: Final = 1 << 15
_RIGHTS: Final = (13, 14, 15, 15, 16)
"""The number of rights that each version of Landlock knows."""


def _restrict_files(places: Sequence[Place]) -> None:
    version = _check(_libc.syscall(_CREATE_RULESET, None, 0, 1), "landlock")
    handled = (1 << _RIGHTS[min(version, len(_RIGHTS)) - 1]) - 1
    fields = (handled, 0, 0b11 if version >= 6 else 0)
    size = 8 * (3 if version >= 6 else 2 if version >= 4 else 1)
    attributes = (ctypes.c_uint64 * 3)(*fields)
    rules = _check(_libc.syscall(_CREATE_RULESET, attributes, size, 0), "landlock")
    # A disk is a file there, which the administrator may read.
    hidden = ["/dev", *(path for kind, path in places if kind == "h")]

    def allow(path: str, rights: int) -> None:
        _add_rule(rules, path, rights & handled)

    _allow_except("/", hidden, lambda path: allow(path, _READ_RIGHTS), allow)
    for kind, path in places:
        if kind == "w":
            _allow_except(path, hidden, lambda found: allow(found, handled), allow)
        elif kind == "r":
            allow(path, _READ_RIGHTS)
    for name in _DEVICES:
        allow(f"/dev/{name}", _DEVICE_RIGHTS | _TRUNCATE | _DEVICE_CONTROL)
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")
    _check(_libc.syscall(_RESTRICT_SELF, rules, 0), "landlock")
    os.close(rules)


def _allow_except(
    path: str,
    hidden: Sequence[str],
    allow_all: Callable[[str], None],
    allow: Callable[[str, int], None],
) -> None:
    """Allow what is below a path, except hidden places: a rule cannot take back what one gave."""
    if path in hidden:
        return
    if not any(place.startswith(path.rstrip("/") + "/") for place in hidden):
        allow_all(path)
        return
    allow(path, _LIST_RIGHT)
    for child in _children(path):
        _allow_except(child, hidden, allow_all, allow)


def _children(path: str) -> Iterator[str]:
    try:
        with os.scandir(path) as found:
            # The target of a link is allowed or not by its own place.
            names = [entry.name for entry in found if not entry.is_symlink()]
    except OSError:
        return
    for name in names:
        yield os.path.join(path, name)


def _add_rule(rules: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    if not os.path.isdir(path):
        rights &= _FILE_RIGHTS
    rule = rights.to_bytes(8, sys.byteorder) + place.to_bytes(4, sys.byteorder)
    _check(_libc.syscall(_ADD_RULE, rules, 1, rule, 0), path)
    os.close(place)


# ---- privileges -----------------------------------------------------------------------------


def _give_up_privileges(program: bytes) -> None:
    for number in range(_CAPABILITY_MAX + 1):
        if not _KEPT_CAPABILITIES >> number & 1:
            # Fails for numbers that this kernel does not know, and without the privilege.
            _libc.prctl(_DROP_BOUNDING, number, 0, 0, 0)
    _libc.prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(header, sets), "capget")
    kept = (sets[0] & _KEPT_CAPABILITIES, sets[1] & _KEPT_CAPABILITIES, 0, 0, 0, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)(*kept)), "capset")
    _check(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")
    if program:
        _install_filter(program)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_char_p))


def _install_filter(program: bytes) -> None:
    made = _Filter(len(program) // _INSTRUCTION_BYTES, program)
    _check(_libc.prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(made), 0, 0), "seccomp")


def _check(result: int, subject: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), subject)
    return result


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
