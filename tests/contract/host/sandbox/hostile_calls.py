"""System calls, devices, sockets and variables by which commands try to leave the sandbox.

`ESCAPED` is printed by what must not work; the other commands are seen by their effects. Words in
braces are those of hostile_commands.
"""

import platform
from collections.abc import Iterator
from typing import Final

NAMESPACES: Final = {
    "mounts": 0x20000,
    "cgroups": 0x2000000,
    "names": 0x4000000,
    "messages": 0x8000000,
    "users": 0x10000000,
    "processes": 0x20000000,
    "network": 0x40000000,
}
CALLS: Final = (
    # Mounts, old and new.
    *("165, b'none', b'/', 0, 0x1020, 0", "165, b'tmpfs', b'/tmp', b'tmpfs', 0, 0"),
    *("165, b'{out}', b'{w}', 0, 0x1000, 0", "166, b'/', 2", "166, b'{data}', 2"),
    *("155, b'.', b'.'", "161, b'{out}'", "428, -100, b'{out}', 1", "429, 3, b'', -100, b'{w}', 4"),
    *("430, b'tmpfs', 0", "430, b'ext4', 1", "431, 3, 6, 0, 0, 0", "432, 3, 0, 0"),
    *("433, -100, b'/', 0", "442, -100, b'/', 0x8000, bytes(32), 32", "467, -100, b'/', 1, 0, 0"),
    # Kernel keys, programs in the kernel, and memory of others.
    *("248, b'user', b'k', b'v', 1, -3", "249, b'user', b'k', 0, -3", "250, 0, -3, 1"),
    *("250, 11, -4, 0, 0", "321, 0, bytes(72), 72", "298, bytes(128), 0, -1, -1, 0", "323, 1"),
    *("310, {pid}, 0, 0, 0, 0, 0", "311, {pid}, 0, 0, 0, 0, 0", "101, 16, {pid}, 0, 0"),
    *("101, 0x4206, {pid}, 0, 0", "438, 3, 0, 0", "434, {pid}, 0", "312, {pid}, {pid}, 0, 0, 0"),
    *("256, {pid}, 0, 0, 0", "279, {pid}, 1, 0, 0, 0, 0", "440, 3, 0, 0, 21, 0"),
    *("425, 8, bytes(120)", "426, 3, 1, 0, 0, 0, 0", "427, 3, 0, 0, 0"),
    # The machine.
    *("169, 0xfee1dead, 672274793, 0, 0", "170, b'x', 1", "171, b'x', 1", "175, 0, 0, b''"),
    *("313, 0, b'', 0", "176, b'dummy', 0", "246, 0, 0, 0, 0", "320, 0, 0, 0, b'', 0"),
    *("167, b'{w}/mine', 0", "168, b'/x'", "163, b'{out}/new'", "179, 0x80000000, 0, 0, 0"),
    *(
        "103, 10, 0, 0",
        "172, 3",
        "173, 0x80, 1, 1",
        "153,",
        "227, 0, bytes(16)",
        "164, bytes(16), 0",
    ),
    *("304, -100, bytes(200), 0", "443, 3, 0, 0, 0", "308, 3, 0", "435, bytes(88), 88"),
    # Another calling convention.
    *(
        "0x40000000 + 39,",
        "0x40000000 + 165, b'none', b'/', 0, 0x1020, 0",
        "0x40000000 + 101, 16, {pid}",
    ),
    # Flags and requests with bits that the kernel ignores.
    *("16, 0, 0x100005412, b'x'", "16, 0, 0x5412, b'x'", "16, 0, 0x541c, b'x'"),
    *("41, 0x100000001, 1, 0", "272, 0x110000000"),
    *(f"272, {flag:#x}" for flag in NAMESPACES.values()),
    *(f"56, {flag | 17:#x}, 0, 0, 0, 0" for flag in NAMESPACES.values()),
)
"""By their numbers on x86_64: none may succeed."""

_INT_80: Final = (
    "import ctypes, mmap; m = mmap.mmap(-1, 4096, prot=7);"
    " m.write(bytes([0xb8, 21, 0, 0, 0, 0xcd, 0x80, 0xc3]));"
    " f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)));"
    " print('ESCAPED' if f() != -1 else '')"
)
"""`mount` by the convention of 32 bits, whose numbers are others."""

FAMILIES: Final = (
    1,
    3,
    4,
    5,
    9,
    15,
    17,
    20,
    21,
    24,
    26,
    29,
    30,
    31,
    33,
    35,
    38,
    39,
    40,
    42,
    43,
    44,
)

SOCKETS: Final = (
    "s.connect('{socket}')",
    "s.connect('\\0canary')",
    "s.connect('/run/docker.sock')",
    "s.connect('/run/dbus/system_bus_socket')",
    "s.connect('/tmp/.X11-unix/X0')",
    "s.connect('\\0/tmp/.X11-unix/X0')",
    "s.bind('{out}/new')",
    "s.bind('\\0new')",
    "s.bind('{w}/own')",
)
SYSTEM_FILES: Final = (
    *("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname"),
    *("/proc/sys/kernel/randomize_va_space", "/proc/sys/kernel/yama/ptrace_scope"),
    *("/proc/sys/vm/overcommit_memory", "/proc/sys/vm/drop_caches", "/proc/sys/fs/suid_dumpable"),
    *("/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/binfmt_misc/register", "/proc/sysrq-trigger"),
    *(
        "/proc/sys/kernel/ns_last_pid",
        "/proc/sys/user/max_user_namespaces",
        "/proc/irq/default_smp_affinity",
    ),
    *(
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ),
    *(
        "/sys/fs/cgroup/cgroup.procs",
        "/sys/module/kernel/parameters/panic",
        "/sys/kernel/profiling",
    ),
    *(
        "/dev/mem",
        "/dev/kmsg",
        "/dev/port",
        "/dev/vda",
        "/dev/sda",
        "/dev/loop-control",
        "/dev/kvm",
    ),
    *("/dev/net/tun", "/dev/fuse", "/dev/userfaultfd", "/dev/snapshot", "/dev/tty0", "/dev/vcs"),
)
NODES: Final = (
    "c 1 1",
    "c 1 4",
    "c 1 11",
    "c 5 1",
    "c 4 0",
    "c 10 229",
    "c 10 237",
    "b 254 0",
    "b 8 0",
)
GIT_VARIABLES: Final = (
    *("GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_ASKPASS", "GIT_PAGER", "GIT_EDITOR"),
    *("GIT_SEQUENCE_EDITOR", "GIT_PROXY_COMMAND", "LESSOPEN", "BASH_ENV", "ENV", "PAGER"),
)
GIT_USES: Final = (
    "git init -q r; cd r; echo 1 > a; git add a; git -c user.name=x -c user.email=x@x commit -qm 1;"
    " echo 2 > a; git diff | cat; git -p log; git fetch ssh://x/y; git commit --amend; bash -c :;"
    " sh -ic : ; true"
)
LINKS: Final = (
    "ln -s {out} d; mv mine d/new",
    "ln -s {out}/kept k; truncate -s 0 k",
    "ln -s {out}/kept k; chmod 777 k",
    "ln -s {out}/new k; touch k",
    "ln -sfn {out} d; mkdir d/new",
    "ln -s ../out d; rm d/kept",
    "ln -s /proc/self/root{out} d; echo x > d/new",
    "ln -s /proc/self/cwd/../out d; echo x > d/new",
    "ln {out}/kept hard; chmod 777 hard",
    "ln -L {out}/kept hard; truncate -s 0 hard",
    (
        "python3 -c \"import os; os.link('/proc/self/fd/%d' % os.open('{out}/kept', 0), 'h');"
        " open('h', 'w')\""
    ),
    "python3 -c \"import os; os.rename('mine', '{out}/new')\"",
    "mkdir e; cd e; mv ../e ../e2; ln -s {out} ../e; echo x > new; echo x > ../e/new",
    "mkdir e; cd e; rmdir ../e; ln -s {out} ../e; cd ../e && echo x > new",
    "mkdir -p e/f; (cd e/f; mv {w}/e/f {w}/g; cd ..; echo x > ../out/new)",
    (
        "for i in 1 2 3 4 5 6 7; do ln -sfn {out} s; ln -sfn . s; done & for i in 1 2 3 4 5 6 7;"
        " do echo x > s/new; done; wait; rm -f new"
    ),
    "mkfifo q; ln -sf {out}/kept t; (echo x > q &); cat q > t",
    "cd /proc/self/fd && cd {out} && echo x > new",
    "cd -P {out}; : > kept",
    "exec 9< {out}; cd /proc/self/fd/9 && echo x > new",
)
ORPHANS: Final = (
    "setsid -f sh -c 'sleep 0.1; echo x > {out}/new'",
    "setsid -f setsid -f setsid -f sh -c 'kill -9 {pid}; echo x > {out}/new'",
    (
        'python3 -c "import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0);'
        " open('{out}/new', 'w')\"; sleep 0.1"
    ),
    "env -i setsid -f sh -c 'exec 0<&- 1>&- 2>&-; echo x > {out}/new'",
    "trap '' TERM HUP INT; (trap '' TERM HUP; echo x > {out}/new) & wait",
    (
        "python3 -c \"import os; f = os.memfd_create('x');"
        " os.write(f, b'#!/bin/sh\\necho x > {out}/new\\n');"
        " os.execve('/proc/self/fd/%d' % f, ['x'], dict())\""
    ),
    "cp /bin/sh s; chmod 6755 s; ./s -pc 'id -u > {out}/new'",
    "python3 -c \"import os; os.setresuid(0, 0, 0); os.setgroups([0]); open('{out}/new', 'w')\"",
    (
        'python3 -c "import ctypes; ctypes.CDLL(None).prctl(36, 1)";'
        " setsid -f sh -c 'echo x > {out}/new'"
    ),
)
INSIDE_PROCESSES: Final = (
    *(f"cat /proc/1/{name}" for name in ("environ", "maps", "root/{secret}", "cwd/{secret}")),
    "for f in /proc/1/fd/*; do echo x > $f; done; ls -l /proc/1/fd",
    "dd if=/proc/1/mem bs=4096 count=1 skip=16",
    "for f in /proc/[0-9]*/root; do cat $f{secret}; echo x > $f{out}/new; done",
    "nsenter -t 1 -a cat {secret}",
    "nsenter -t $$ -U --preserve-credentials cat {secret}",
    "echo 0 0 4294967295 > /proc/self/uid_map && echo ESCAPED",
    "kill -9 -1 -{pid}; kill -9 {pid}",
    "ls /proc/{pid} && echo ESCAPED",
    "prlimit --pid {pid} --nofile=9 && echo ESCAPED",
    "renice -n 19 -p {pid} && echo ESCAPED",
    "taskset -p 1 {pid} && echo ESCAPED",
    "chrt -p -o 0 {pid} && echo ESCAPED",
)


def list_commands() -> Iterator[str]:
    """All commands, with their words in braces."""
    if platform.machine() == "x86_64":
        for call in CALLS:
            yield _python(
                "import os; from ctypes import *; p = os.getpid();"
                f" r = CDLL(None).syscall({call});"
                " print('ESCAPED' if r != -1 and os.getpid() == p else '') if r else os._exit(0)"
            )
        yield _python(_INT_80)
    for family in FAMILIES:
        yield _python(
            "import socket\nfor kind in (1, 2, 3, 5):\n"
            f" try: socket.socket({family}, kind); print('ESCAPED')\n except OSError: pass"
        )
    for use in SOCKETS:
        for kind in (1, 2, 5):
            yield _python(f"import socket; s = socket.socket(1, {kind}); {use}; print('ESCAPED')")
    for path in SYSTEM_FILES:
        # Without making it: /dev is a private directory, in which a file may be made.
        yield (
            f"(head -c 100 {path} > v; dd if=v of={path} conv=nocreat,notrunc) 2> /dev/null"
            " && echo ESCAPED"
        )
    for node in NODES:
        name = f"n{node.replace(' ', '')}"
        yield f"mknod {name} {node} && head -c 1 {name} && echo ESCAPED"
    for name in GIT_VARIABLES:
        yield f"export {name}='sh -c \"echo x > {{out}}/new\"'; {GIT_USES}"
    yield from (*LINKS, *ORPHANS, *INSIDE_PROCESSES)


def _python(code: str) -> str:
    return f'python3 -c "{code}"'
