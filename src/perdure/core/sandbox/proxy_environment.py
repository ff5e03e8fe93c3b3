"""Environment variables by which programs find the filtering proxy of the sandbox."""

from typing import Final

from perdure.core.sandbox.host_list import HostList

PROXY_HOST: Final = "127.0.0.1"
PROXY_PORT: Final = 3128
"""The usual port of proxies. The network is the command's own, so it is free."""

_NAMES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY")
_OWN_SERVERS: Final = "localhost,127.0.0.1,::1"


def make(hosts: HostList | None) -> dict[str, str]:
    """The variables, in both spellings. The command's own servers are reached without the proxy.

    Unless servers of this machine are among the hosts: the proxy leads to these.
    """
    url = f"http://{PROXY_HOST}:{PROXY_PORT}"
    names = dict.fromkeys(_NAMES, url)
    own = "" if hosts is not None and hosts.names_this_machine else _OWN_SERVERS
    upper = {**names, "NO_PROXY": own}
    # Node.js uses the variables above only if this one is set.
    return {
        **upper,
        **{name.lower(): value for name, value in upper.items()},
        "NODE_USE_ENV_PROXY": "1",
    }
