"""What a command in the sandbox may reach, and the configured modes.

A policy is a list of places. The deepest place that contains a path decides about it; what no place
contains can be read and not written. `read-only` lets commands write only temporary files,
`workspace-write` also the Location and its git directory, `danger-full-access` everything.

Invariant: hidden places stay hidden in every mode with a sandbox, also inside the workspace.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from msgspec import structs

from perdure.core.files.paths import is_within
from perdure.core.sandbox import proxy_environment
from perdure.core.sandbox.host_list import HostList
from perdure.schema.value import Value

Access = Literal["write", "read", "hide", "keep", "reserve"]
"""`keep` can be written but not renamed or replaced, so that places below it cannot be evaded.
`reserve` is a directory that can be read, and is made if it is missing: what is not there cannot be
protected."""

SECRET_PATHS: Final = (
    # Keys of machines and people.
    *(".ssh", ".gnupg", ".putty", ".step", ".age", ".config/age", ".config/sops", ".pki"),
    *(".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".vault-token"),
    *(".config/op", ".config/1Password", ".config/Bitwarden", ".config/Bitwarden CLI", ".lpass"),
    # Clouds and what runs in them.
    *(".aws", ".azure", ".oci", ".aliyun", ".kube", ".boto", ".s3cfg", ".config/gcloud"),
    *(".config/doctl", ".config/hcloud", ".config/linode-cli", ".config/scw", ".config/rclone"),
    *(".config/flyctl", ".fly", ".config/heroku", ".local/share/heroku", ".config/netlify"),
    *(".netlify", ".vercel", ".local/share/com.vercel.cli", ".wrangler", ".config/.wrangler"),
    *(".terraform.d/credentials.tfrc.json", ".terraformrc", ".pulumi/credentials.json"),
    *(".config/stripe", ".docker/config.json", ".config/containers/auth.json"),
    *(".databrickscfg", ".snowsql", ".config/snowflake", ".dbt/profiles.yml", ".kaggle"),
    # Repositories and registries of packages.
    *(".netrc", "_netrc", ".git-credentials", ".gitcookies", ".config/git/credentials"),
    *(".config/gh", ".config/hub", ".config/glab-cli", ".config/tea", ".subversion/auth"),
    *(".pypirc", ".npmrc", ".yarnrc.yml", ".cargo/credentials", ".cargo/credentials.toml"),
    *(".gem/credentials", ".bundle/config", ".composer/auth.json", ".config/composer/auth.json"),
    *(".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties"),
    *(".nuget/NuGet/NuGet.Config", ".hex", ".config/NuGet"),
    # Models and agents.
    *(".local/share/opencode", ".claude", ".claude.json", ".codex", ".gemini", ".anthropic"),
    *(".openai", ".config/github-copilot", ".cache/huggingface/token", ".huggingface"),
    # Databases, mail, browsers, shells.
    *(".pgpass", ".my.cnf", ".mylogin.cnf", ".authinfo", ".authinfo.gpg", ".msmtprc"),
    *(".config/msmtp", ".mbsyncrc", ".offlineimaprc", ".fetchmailrc", ".mutt", ".thunderbird"),
    *(".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware"),
    *(".config/microsoft-edge", ".config/Signal", ".config/filezilla", ".config/remmina"),
    *(".Xauthority", ".ICEauthority", ".bash_history", ".zsh_history", ".python_history"),
    *(".psql_history", ".mysql_history", ".node_repl_history", ".rediscli_history"),
    *(".local/share/fish/fish_history",),
    # Wallets.
    *(".bitcoin", ".ethereum", ".electrum", ".config/solana"),
)
"""Below the home directory: places where programs keep keys, passwords and typed commands."""

SYSTEM_SECRETS: Final = (
    *("/run/secrets", "/run/credentials", "/run/user", "/var/lib/kubelet", "/var/lib/docker"),
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private"),
    *(f"/etc/ssh/ssh_host_{kind}_key" for kind in ("rsa", "dsa", "ecdsa", "ed25519")),
    *("/etc/NetworkManager/system-connections", "/etc/wireguard", "/etc/openvpn"),
    *("/etc/kubernetes", "/etc/letsencrypt"),
)


class Place(Value):
    access: Access
    path: str
    """Canonical and absolute."""


class SandboxPolicy(Value, kw_only=True):
    places: tuple[Place, ...]
    """Outer places before the places inside them."""
    network: bool = False
    hosts: HostList | None = None
    """Hosts that are reached through the filtering proxy; None: there is no proxy."""
    temporary: str | None = None
    """The directory for temporary files, if there is one."""
    absent: tuple[str, ...] = ()
    """Files that are not there, so that nothing protects them, and that must not appear."""

    def variables(
        self, given: Mapping[str, str] | None, *, proxied: bool = False
    ) -> Mapping[str, str] | None:
        """The environment of a command: its temporary files go where it may write.

        If it is `proxied`, programs find the filtering proxy by the usual variables.
        """
        if given is None:
            return given
        temporary = {} if self.temporary is None else {"TMPDIR": self.temporary}
        proxy = proxy_environment.make(self.hosts) if proxied else {}
        return {**given, **temporary, **proxy}

    def allowing(self, path: str) -> "SandboxPolicy":
        """A policy in which this file can be written, unless it is hidden."""
        if self.access(path) != "read":
            return self
        others = (place for place in self.places if place.path != path)
        places = (*others, Place("write", path))
        made = make_policy(places, network=self.network, temporary=self.temporary)
        return structs.replace(made, absent=self.absent, hosts=self.hosts)

    def access(self, path: str) -> Access:
        """What the policy says about a canonical path."""
        found: Access = "read"
        for place in self.places:
            if is_within(path, place.path):
                found = _EFFECTS.get(place.access, place.access)
        return found


def make_policy(
    places: Iterable[Place], *, network: bool = False, temporary: str | None = None
) -> SandboxPolicy:
    """A policy of these places, in order; of two with the same path, the stricter counts."""
    chosen: dict[str, Place] = {}
    for place in places:
        known = chosen.get(place.path)
        if known is None or _STRICTNESS[place.access] > _STRICTNESS[known.access]:
            chosen[place.path] = place
    made = SandboxPolicy(places=_order(chosen), network=network, temporary=temporary)
    for path in _outer_directories(made):
        chosen.setdefault(path, Place("keep", path))
    return structs.replace(made, places=_order(chosen))


_STRICTNESS: Final[dict[Access, int]] = {"write": 0, "keep": 1, "reserve": 2, "read": 2, "hide": 3}
_EFFECTS: Final[dict[Access, Access]] = {"keep": "write", "reserve": "read"}


def _order(chosen: Mapping[str, Place]) -> tuple[Place, ...]:
    return tuple(sorted(chosen.values(), key=lambda place: (_depth(place.path), place.path)))


def _outer_directories(policy: SandboxPolicy) -> Iterator[str]:
    """Writable directories around protected places: renamed, they would take the place along."""
    for place in policy.places:
        if place.access == "write":
            continue
        outer = posixpath.dirname(place.path)
        while outer != "/" and policy.access(outer) == "write":
            yield outer
            outer = posixpath.dirname(outer)


def _depth(path: str) -> int:
    return 0 if path == "/" else path.count("/")
