"""Ways to reach hosts that a list does not name, as attempts of proxy_client.py."""

import os

Attempt = tuple[str, ...]


def get(url: str, host: str = "", *more: str) -> str:
    headers = (f"Host: {host}", *more) if host else more
    return "\r\n".join((f"GET {url} HTTP/1.1", *headers, "", ""))


def hostile_attempts(allowed: int, forbidden: int) -> list[Attempt]:
    """Ways to reach a host that is not in the list, or the host in the list as another one."""
    hosts = [
        *(f"evil.test:{allowed}", f"wild.test:{allowed}", f"allowed.test:{forbidden}"),
        *(f"127.0.0.1:{forbidden}", f"localhost:{forbidden}", f"127.1:{forbidden}"),
        *(f"2130706433:{forbidden}", f"0x7f000001:{forbidden}", f"017700000001:{forbidden}"),
        *(f"0x7f.0.0.1:{forbidden}", f"0177.0.0.01:{forbidden}", f"127.0.1:{forbidden}"),
        *(f"[::ffff:127.0.0.1]:{forbidden}", f"[::1]:{forbidden}", f"[::]:{forbidden}"),
        *(f"0.0.0.0:{forbidden}", f"0:{forbidden}", f"[::ffff:7f00:1]:{allowed}"),
        *(f"127.0.0.2:{allowed}", f"[64:ff9b::7f00:1]:{allowed}", f"[2002:7f00:1::]:{allowed}"),
        *(
            f"\uff11\uff12\uff17.0.0.1:{forbidden}",
            f"127。0。0。1:{forbidden}",
            f"ⓔvil.test:{allowed}",
        ),
        *("169.254.169.254:80", "metadata.test:80", "internal.test:443", "mapped.test:80"),
        *(f"mixed.test:{allowed}", f"allowed.test.evil.test:{allowed}", "nowhere.test:443"),
        *(f"evilallowed.test:{allowed}", f"xwild.test:{allowed}", f".wild.test:{allowed}"),
        *(f"a..wild.test:{allowed}", f"evil.test\x00.wild.test:{allowed}", "allowed.test:22"),
        *(f"evil.test%2f.wild.test:{allowed}", f"evil.test#.wild.test:{allowed}"),
        *(f"evil.test/.wild.test:{allowed}", f"allowed.test@evil.test:{allowed}"),
        *(f"evil.test:{allowed}\\@allowed.test:{allowed}", f"localhost.:{forbidden}"),
        *(f"a.localhost:{forbidden}", f"EVIL.TEST:{allowed}", f"evil.test.:{allowed}"),
        *(f"allowed.test:{allowed}:{forbidden}", f"allowed.test:+{allowed}", "allowed.test:"),
    ]
    # Browsers and libraries send names in ASCII, but a hostile program need not.
    spelled = [host.encode().decode("latin-1") for host in hosts]
    tunnels: list[Attempt] = [("proxy", f"CONNECT {host} HTTP/1.1\r\n\r\n") for host in spelled]
    plain: list[Attempt] = [("proxy", get(f"http://{host}/", host)) for host in spelled]
    target, other = f"allowed.test:{allowed}", f"evil.test:{allowed}"
    length = f"Content-Length: {len(get('/', other))}"
    return [
        *tunnels,
        *plain,
        ("proxy", get(f"http://{target}/", other)),
        ("proxy", get(f"http://{target}/", target, f"Host: {other}")),
        ("proxy", get(f"http://{target}/")),
        ("proxy", get("/", other)),
        ("proxy", get(f"https://{target}/", target)),
        ("proxy", get(f"http://{target}/", target, "Transfer-Encoding: chunked", length)),
        ("proxy", get(f"http://{target}/", target, "Content-Length: 0", length)),
        ("proxy", get(f"http://{target}/", target, "Transfer-Encoding: xchunked")),
        ("proxy", get(f"http://{target}/", target, f" {length}")),
        ("proxy", get(f"http://{target}/", f"{target}\nHost: {other}")),
        ("tunnel", f"CONNECT {target} HTTP/1.1\r\n\r\n", get("/", other)),
        ("tunnel", f"CONNECT {target} HTTP/1.1\r\n\r\n", "\r\n\r\n" + get("/", other)),
        ("tunnel", f"CONNECT {target} HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("tls", target, "evil.test"),
        ("tls", target, "a.wild.test"),
        ("tls", f"a.wild.test:{allowed}", "b.wild.test"),
        ("proxy", "\x05\x01\x00\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50"),
        ("proxy", "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x02" + port_bytes(allowed)),
        ("proxy", "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01" + port_bytes(forbidden)),
        ("proxy", "\x05\x01\x00\x05\x01\x00\x03\x09evil.test" + port_bytes(allowed)),
        ("proxy", "\x05\x01\x00\x05\x01\x00\x03\x0b2130706433x" + port_bytes(forbidden)),
        ("proxy", "\x05\x01\x00\x05\x01\x00\x04" + "\0" * 15 + "\x01" + port_bytes(forbidden)),
        ("proxy", "\x05\x01\x00\x05\x03\x00\x03\x0callowed.test" + port_bytes(allowed)),
        ("proxy", "\x04\x01" + port_bytes(forbidden) + "\x7f\x00\x00\x01\x00"),
        *(("python", code) for code in around_the_proxy(allowed, forbidden)),
    ]


def around_the_proxy(allowed: int, forbidden: int) -> list[str]:
    """Ways out that do not use the proxy."""
    inet, inet6 = "socket.AF_INET", "socket.AF_INET6"
    return [
        *(
            f"import socket; socket.create_connection(('{host}', {port}), timeout=2)"
            for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "127.0.0.2", "203.0.113.1")
            for port in (allowed, forbidden)
        ),
        (
            f"import socket; s = socket.socket({inet}, socket.SOCK_DGRAM);"
            " s.sendto(b'x', ('203.0.113.1', 53))"
        ),
        (
            f"import socket; s = socket.socket({inet6}, socket.SOCK_DGRAM);"
            " s.sendto(b'x', ('2606:4700:4700::1111', 53))"
        ),
        f"import socket; socket.socket({inet}, socket.SOCK_RAW, 1)",
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)",
        "import socket; socket.socket(socket.AF_UNIX).connect('\\0perdure-test')",
        "import socket; socket.socket(40, socket.SOCK_STREAM)",
        "import socket; socket.getaddrinfo('evil.test', 80)",
        "import os; os.unshare(0x40000000)" if hasattr(os, "unshare") else "raise OSError",
        "import ctypes; c = ctypes.CDLL(None); assert c.unshare(0x10000000) == 0",
        (
            "import ctypes, os; f = os.open('/proc/1/ns/net', 0); c = ctypes.CDLL(None);"
            " assert c.setns(f, 0) == 0"
        ),
        (
            "import glob, os; s = [os.readlink(f) for f in glob.glob('/proc/1/fd/*')];"
            " n = next(f for f in glob.glob('/proc/1/fd/*') if 'socket' in os.readlink(f));"
            " open(n, 'wb').write(b'x')"
        ),
        (
            "import ctypes; c = ctypes.CDLL(None); p = c.syscall(434, 1, 0); assert p >= 0;"
            " assert any(c.syscall(438, p, n, 0) >= 0 for n in range(64))"
        ),
        (
            "import glob, socket; p = glob.glob('/var/tmp/*/perdure-*/network-*')[0];"
            " socket.socket(socket.AF_UNIX).connect(p)"
        ),
        "import ctypes; c = ctypes.CDLL(None); assert c.syscall(425, 8, 0) >= 0",
        (
            "import subprocess; subprocess.run(['ip', 'link', 'add', 'x', 'type', 'dummy'],"
            " check=True, stderr=-3)"
        ),
    ]


def port_bytes(port: int) -> str:
    return port.to_bytes(2, "big").decode("latin-1")
