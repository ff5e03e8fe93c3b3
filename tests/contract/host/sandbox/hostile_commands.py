"""Commands that try to have an effect outside the sandbox, or to read what is hidden.

Each way is combined with each target. The words in braces are filled in by the test: `out` a
directory outside with the file `kept`, `secret` a hidden file, `pid` a process outside, `port` and
`socket` a server outside, `w` the workspace. They may run as root, so none of them does harm to the
machine if the sandbox has a hole: no signal to all processes, no other date or host name.
"""

from collections.abc import Iterator
from itertools import product
from typing import Final

TARGETS: Final = (
    "{out}/kept",
    "{out}/new",
    "{home}/.bashrc",
    "{data}/perdure.db",
    "{config}/opencode.json",
    "{w}/.git/hooks/pre-commit",
    "{w}/.git/config",
    "{w}/opencode.json",
)
WRITES: Final = (
    "echo x > T",
    "echo x >> T",
    "echo x | tee T",
    "echo x | tee -a T",
    "touch -d 2001-01-01 T",
    "cp mine T",
    "mv mine T",
    "ln -f mine T",
    "ln -sf mine T",
    "ln -s T link; echo x > link",
    "ln -s $(dirname T) dir; echo x > dir/$(basename T)",
    "ln T hard; echo x >> hard",
    "dd if=/dev/zero of=T bs=1 count=3",
    "truncate -s 0 T",
    "sed -i s/a/b/ T",
    "rm -f T",
    "rm -rf $(dirname T)",
    "chmod 777 T",
    "chown 1:1 T",
    "mkdir -p T.d",
    "install -m 755 mine T",
    "tar cf a.tar mine && tar xf a.tar -C $(dirname T)",
    "cd $(dirname T) && echo x > $(basename T)",
    "echo x > /proc/self/root/T",
    "echo x > /proc/1/root/T",
    "echo x > /proc/self/cwd/../../../../../../../../T",
    "exec 3<>T; echo x >&3",
    "exec 3<T; echo x > /proc/self/fd/3",
    "mount -o remount,rw / ; echo x > T",
    "mount -o remount,rw,bind $(dirname T); echo x > T",
    "umount -l $(dirname T); echo x > T",
    "unshare -rm sh -c 'umount -l $(dirname T); mount -o remount,rw /; echo x > T'",
    "nsenter -t 1 -m sh -c 'echo x > T'",
    "mv $(dirname T) $(dirname T).gone",
    "mv .git moved; mkdir -p .git/hooks; echo x > .git/config; echo x > T",
    "python3 -c \"import os; os.rename('mine', 'T')\"",
    "python3 -c \"import os; os.symlink('/etc', 'T')\"",
    "python3 -c \"import os; os.setxattr('T', 'user.a', b'x')\"",
    "(setsid sh -c 'sleep 0.2; echo x > T' &) ; true",
    "nohup sh -c 'echo x > T' > /dev/null 2>&1 &",
    'perl -e \'open(F, ">", "T"); print F 1\'',
)
SECRETS: Final = (
    "{secret}",
    "{home}/.ssh/id_ed25519",
    "{config}/opencode.json",
    "{w}/link",
    "/proc/{pid}/environ",
)
READS: Final = (
    "cat S",
    "head -c 100 S",
    "cp S copy; cat copy",
    "ln -s S l2; cat l2",
    "ln S h2; cat h2",
    "grep -r . $(dirname S)",
    "tar c S | cat",
    "base64 -w0 S | base64 -d",
    "cat /proc/self/root/S",
    "cat /proc/1/root/S",
    "python3 -c \"print(open('S').read())\"",
    "exec 3<S; cat <&3",
    "umount $(dirname S); cat S",
    "unshare -rm sh -c 'umount -l $(dirname S); cat S'",
    "find / -xdev -name $(basename S) -exec cat {} + 2>/dev/null | head -c 100000",
    "dd if=S bs=100 count=1",
)
_UNIX: Final = (
    "import socket; s = socket.socket(socket.AF_UNIX); s.connect('{socket}'); s.send(b'x')"
)
_TCP: Final = "import socket; s = socket.create_connection(('127.0.0.1', {port})); s.send(b'x')"
OTHERS: Final = (
    f'python3 -c "{_UNIX}"',
    f'python3 -c "{_TCP}"',
    "exec 3<>/dev/tcp/127.0.0.1/{port}; echo x >&3",
    "bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}; echo x >&3'",
    "curl -m 2 http://127.0.0.1:{port}/",
    "curl -m 2 --unix-socket {socket} http://x/",
    'python3 -c "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)" && echo ESCAPED',
    'python3 -c "import socket; socket.socket(40, 1)" && echo ESCAPED',
    'python3 -c "import socket; socket.socket(38, 5)" && echo ESCAPED',
    "kill -9 {pid}",
    "kill -STOP {pid}",
    "pkill -9 -f canary-process",
    'python3 -c "import os; os.kill({pid}, 9)"',
    'python3 -c "import os; os.kill(-{pid}, 9)"',
    "cat /proc/{pid}/mem",
    "ls -l /proc/{pid}/fd && cat /proc/{pid}/fd/0",
    "cat /proc/{pid}/cmdline; cat /proc/{pid}/environ",
    "for p in /proc/[0-9]*; do cat $p/environ; done",
    "gdb -p {pid} -batch",
    "strace -p {pid}",
    'python3 -c "from ctypes import *; exit(CDLL(None).ptrace(16, {pid}, 0, 0))" && echo ESCAPED',
    'python3 -c "from ctypes import *; exit(CDLL(None).unshare(0x10000000))" && echo ESCAPED',
    'python3 -c "from ctypes import *; exit(CDLL(None).syscall(425, 8, 0) < 0)" && echo ESCAPED',
    'python3 -c "from ctypes import *; exit(CDLL(None).setns(0, 0))" && echo ESCAPED',
    "python3 -c \"import fcntl, os; fcntl.ioctl(0, 0x5412, b'x')\" && echo ESCAPED",
    "python3 -c \"import fcntl; fcntl.ioctl(open('/dev/tty'), 0x5412, b'x')\" && echo ESCAPED",
    "for t in /dev/pts/[0-9]*; do echo x > $t && echo ESCAPED; done",
    "cat /dev/mem && echo ESCAPED",
    "mknod disk b 254 0 && head -c 10 disk && echo ESCAPED",
    "ls /dev/vda /dev/sda && head -c 10 /dev/vda /dev/sda && echo ESCAPED",
    "cd /proc/sys/kernel; echo $(cat core_pattern) > core_pattern && echo ESCAPED",
    "echo h > /proc/sysrq-trigger && echo ESCAPED",
    "echo 1 > /sys/kernel/profiling && echo ESCAPED",
    "sudo -n true && echo ESCAPED",
    "chroot / true && echo ESCAPED",
    "unshare -n true && echo ESCAPED",
    "keyctl show && echo ESCAPED",
    "dmesg > /dev/null 2>&1 && echo ESCAPED",
    "hostname $(hostname) && echo ESCAPED",
    'date -s "$(date)" && echo ESCAPED',
)


def list_commands() -> Iterator[str]:
    """All commands, with their words in braces."""
    for way, target in product(WRITES, TARGETS):
        yield way.replace("T", target)
    for way, secret in product(READS, SECRETS):
        yield way.replace("{}", "'{{}}'").replace("S", secret)
    yield from OTHERS
