"""Protected paths: files that other programs execute or obey later, without being asked to.

Changing one asks a person even where edits are allowed, unless a rule of the user names the file or
its folder. They are recognised by name, even if they do not exist yet, because a new one would take
effect. What a program executes only when it is told to (a Makefile, a Dockerfile, source code) is
not protected: the command that runs it is what asks.

Invariant: spellings that some file system treats as the same name are protected alike.
"""

import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

import msgspec

from perdure.core.text import wildcard
from perdure.schema.value import Value


class Protection(Value):
    """An entry of the table: which names, and what becomes of a change."""

    pattern: str
    """Names from a folder downwards; a trailing slash means a folder and everything in it."""
    why: str
    governs: bool = False
    """Whether the file sets the rules of agents. A person is asked about each change of it."""
    fields: tuple[str, ...] = ()
    """Only a change of these fields of its JSON counts; empty for every change."""


_SETTINGS: Final = "it sets what this agent may do"
_GIT: Final = "git runs what it names"
_OBEYED: Final = "coding agents obey it"
_SERVICE: Final = "a build service runs it with its secrets"
_EDITOR: Final = "an editor runs what it names when the folder is opened"
_SHELL: Final = "a shell or a login runs it"
_START: Final = "a program loads it when it starts in this folder"
_INSTALL: Final = "an installation of packages runs it"
_VARIABLES: Final = "programs take their environment from it"

_LISTED: Final[Mapping[str, str]] = {
    _GIT: """
        .gitattributes .gitmodules .gitconfig .githooks/ .husky/ .hg/ .hgrc .svn/ .jj/
        .pre-commit-config.yaml .pre-commit-config.yml .pre-commit-hooks.yaml .overcommit.yml
        lefthook.yml lefthook.yaml lefthook.toml lefthook.json .lefthook.yml .lefthook.yaml
        .lefthook.toml .lefthook.json lefthook-local.yml lefthook-local.yaml .lintstagedrc
        .lintstagedrc.* lint-staged.config.* .simple-git-hooks.*
    """,
    _OBEYED: """
        AGENTS.md AGENTS.override.md AGENT.md CLAUDE.md CLAUDE.local.md GEMINI.md SKILL.md .claude/
        .codex/ .gemini/ .cursor/ .cursorrules .windsurf/ .windsurfrules .clinerules .clinerules/
        .roo/ .roorules .aider.conf.yml .continue/ .junie/ .kiro/ .amazonq/ .rules .mcp.json
        .github/copilot-instructions.md .github/instructions/ .github/prompts/ .github/agents/
        .agents/
    """,
    _SERVICE: """
        .github/workflows/ .github/actions/ .gitlab-ci.yml .gitlab-ci.yaml .gitlab/ci/ .circleci/
        .travis.yml Jenkinsfile Jenkinsfile.* azure-pipelines.yml azure-pipelines.yaml
        .azure-pipelines/ .azuredevops/ bitbucket-pipelines.yml .drone.yml .drone.yaml
        .drone.jsonnet .drone.star .woodpecker.yml .woodpecker.yaml .woodpecker/ .buildkite/
        appveyor.yml .appveyor.yml .cirrus.yml .cirrus.star .semaphore/ .teamcity/ cloudbuild.yaml
        cloudbuild.yml cloudbuild.json buildspec.yml buildspec.yaml codemagic.yaml .forgejo/ .gitea/
        .builds/ .build.yml .tekton/ wercker.yml netlify.toml vercel.json
    """,
    _EDITOR: """
        .vscode/ .idea/ .zed/ .fleet/ .vs/ .nova/ *.code-workspace *.sublime-project .devcontainer/
        .devcontainer.json devcontainer.json .gitpod.yml .exrc .vimrc .nvimrc .nvim.lua .lvimrc
        .dir-locals.el .dir-locals-2.el
    """,
    _SHELL: """
        .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv
        .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout .inputrc
        .config/fish/ .config/autostart/ .config/systemd/ .config/environment.d/ .ssh/ .xinitrc
        .xprofile .xsession .xsessionrc .pam_environment LaunchAgents/ LaunchDaemons/ .tmux.conf
        .screenrc crontab cron.d/
    """,
    _START: """
        .gdbinit .lldbinit .pdbrc .pdbrc.py .pythonrc .pythonrc.py .pythonstartup sitecustomize.py
        usercustomize.py *.pth .irbrc .pryrc .Rprofile .Renviron .sqliterc .psqlrc
        .cargo/config .cargo/config.toml .mvn/ gradle-wrapper.properties .yarnrc .yarnrc.yml .yarn/
        .npmrc .pnpmfile.cjs .pnpmfile.mjs bunfig.toml .bazelrc .buckconfig .watchmanconfig
        .terraformrc mise.toml .mise.toml .mise.local.toml mise.local.toml
    """,
    _VARIABLES: ".env .env.* .envrc .flaskenv",
}
_PACKAGE_FIELDS: Final = (
    *("scripts", "bin", "husky", "lint-staged", "simple-git-hooks", "pre-commit", "pre-push"),
    *("packageManager", "overrides", "pnpm", "trustedDependencies", "gypfile"),
)
TABLE: Final[tuple[Protection, ...]] = (
    Protection("opencode.json", _SETTINGS, governs=True),
    Protection("opencode.jsonc", _SETTINGS, governs=True),
    Protection(".opencode/", _SETTINGS, governs=True),
    Protection(".git/", _GIT, governs=True),
    Protection("git~1/", _GIT, governs=True),
    Protection("package.json", _INSTALL, fields=_PACKAGE_FIELDS),
    Protection("composer.json", _INSTALL, fields=("scripts", "config", "repositories")),
    *(Protection(name, why) for why, names in _LISTED.items() for name in names.split()),
)
USER_SETTINGS: Final = Protection("", _SETTINGS, governs=True)
"""For the user's configuration directory, which is protected by its place."""
_EXEMPT: Final = (
    ".opencode/plans/",
    *(".env.example", ".env.sample", ".env.template", ".env.dist"),
)
"""Texts for people, which no program loads."""


def find_protection(path: str) -> Protection | None:
    """The entry that protects this canonical path, if any; one that governs before others."""
    names = _folded(path).split("/")
    found = [
        entry
        for start in range(len(names))
        for entry in _candidates(names[start], is_last=start == len(names) - 1)
        if _covers(entry.pattern, names[start:]) and not _is_exempt(names[start:])
    ]
    return min(found, key=lambda entry: not entry.governs, default=None)


def is_touched(protection: Protection, *, before: bytes | None, after: bytes | None) -> bool:
    """Whether the protected fields of a file differ before and after a change."""
    if not protection.fields:
        return True
    old, new = _fields(before), _fields(after)
    if old is None or new is None:
        return True
    return any(old.get(name) != new.get(name) for name in protection.fields)


def is_named_by(pattern: str, path: str) -> bool:
    """Whether the pattern of a rule spells the name of this protected path or of its folder.

    A pattern such as `*` matches the path without naming it.
    """
    found = find_protection(path)
    if found is None:
        # Protected by its place: only a rule for exactly this file names it.
        return pattern == path
    parts = _folded(pattern).split("/")
    if not found.governs:
        parts = [part.replace("*", "").replace("?", "") for part in parts]
    return any(_is_name(name, part) for name in _split(found.pattern) for part in parts)


def _fields(data: bytes | None) -> dict[str, msgspec.Raw] | None:
    """The top-level fields of a JSON object; None when it is not one."""
    if data is None:
        return {}
    try:
        return msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _candidates(name: str, *, is_last: bool) -> Iterator[Protection]:
    yield from _BY_FIRST_NAME.get(name, ())
    if is_last:
        yield from _WILD


def _covers(pattern: str, names: list[str]) -> bool:
    """Whether a path is the file of the pattern, or is the folder of the pattern or inside it."""
    wanted = _split(pattern)
    if len(names) < len(wanted) or (len(names) > len(wanted) and not pattern.endswith("/")):
        return False
    return all(map(wildcard.matches, wanted, names))


def _is_exempt(names: list[str]) -> bool:
    return any(_covers(pattern, names) for pattern in _EXEMPT)


def _is_name(name: str, part: str) -> bool:
    literal = name.strip("*").rstrip(".")
    return part == name if "*" not in name else literal in part


@cache
def _split(pattern: str) -> tuple[str, ...]:
    """The names of an entry of the table."""
    return tuple(_folded(pattern).strip("/").split("/"))


def _folded(path: str) -> str:
    # Some file systems ignore case, some invisible characters, some a dot or blank at the end.
    visible = (char for char in path if unicodedata.category(char) != "Cf")
    folded = unicodedata.normalize("NFKC", "".join(visible)).casefold()
    return "/".join(name.rstrip(" .") or name for name in folded.split("/"))


def _by_first_name() -> dict[str, list[Protection]]:
    found: dict[str, list[Protection]] = {}
    for entry in TABLE:
        if "*" not in entry.pattern:
            found.setdefault(_split(entry.pattern)[0], []).append(entry)
    return found


_BY_FIRST_NAME: Final = _by_first_name()
_WILD: Final = tuple(entry for entry in TABLE if "*" in entry.pattern)
