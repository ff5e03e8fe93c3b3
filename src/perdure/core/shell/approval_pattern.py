"""What a person approves when they approve a command for good.

A pattern ends in ` *` and covers the same command with other arguments: `git status *`. How many
words name what is done stands in a table. Programs that run whatever they are told to, and those
that destroy or send things, are approved word for word.

Invariant: a saved text that is meant word for word matches nothing else. One that holds a wildcard
itself cannot be saved that way, and so is not saved at all.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from perdure.core.shell.word import Word, render_words

_NAME: Final = re.compile(r"(?:\./)?[A-Za-z0-9_][\w@%+:,./-]*")
_WILDCARDS: Final = re.compile(r"[*?\\]")

_WORDS: Final[Mapping[str, int]] = {
    "apt": 2,
    "aws": 3,
    "az": 3,
    "brew": 2,
    "bun": 2,
    "bun run": 3,
    "bundle": 2,
    "cargo": 2,
    "cmake": 1,
    "composer": 2,
    "conda": 2,
    "deno": 2,
    "deno task": 3,
    "docker": 2,
    "docker compose": 3,
    "dotnet": 2,
    "gcloud": 3,
    "gh": 3,
    "git": 2,
    "git remote": 3,
    "git stash": 3,
    "git worktree": 3,
    "go": 2,
    "gradle": 2,
    "./gradlew": 2,
    "helm": 2,
    "hg": 2,
    "just": 2,
    "kubectl": 2,
    "make": 2,
    "mvn": 2,
    "nix": 2,
    "npm": 2,
    "npm run": 3,
    "pip": 2,
    "pip3": 2,
    "pnpm": 2,
    "pnpm run": 3,
    "podman": 2,
    "poetry": 2,
    "rake": 2,
    "rustup": 2,
    "svn": 2,
    "swift": 2,
    "systemctl": 2,
    "task": 2,
    "terraform": 2,
    "uv": 2,
    "yarn": 2,
    "yarn run": 3,
}
"""How many words say what is done; one, for programs that are not here."""
_WORDS_MAX: Final = max(_WORDS.values())

_PROGRAMS: Final = """
    alias ash awk bash builtin busybox bunx cd chgrp chmod chown chroot command coproc cp crontab
    csh curl dash dd declare deno doas emacs enable env eval exec expect export find fish gawk gdb
    install ionice java julia kill killall ksh ln lua mapfile mawk mkfs mount mv mysql nc ncat
    netcat nice node nohup npx nsenter osascript parallel patch perl php pkill pnpx popd powershell
    printf psql pushd pwsh python python2 python3 read readarray reboot redis-cli rm rmdir rsync
    ruby scp screen script sed set setsid sftp sh shopt shred shutdown socat source sqlite3 ssh
    stdbuf strace su sudo systemd-run tar tclsh tee telnet time timeout tmux trap truncate ts-node
    tsx umount unshare unzip uvx vi vim watch wget xargs xdg-open zip zsh . [
"""
"""Never a prefix: they run code, change or remove files, or speak to the network."""

_VERBS: Final = """
    apt install, apt purge, apt remove, brew uninstall, bun add, bun x, bundle exec, cargo install,
    cargo publish, cargo run, composer exec, conda run, deno eval, deno run, docker compose down,
    docker compose exec, docker compose run, docker exec, docker push, docker rm, docker rmi,
    docker run, docker system, dotnet run, gh api, gh repo delete, git bisect, git branch,
    git checkout, git clean, git clone, git config, git filter-branch, git push, git rebase,
    git reset, git restore, git rm, git stash clear, git stash drop, git submodule, git switch,
    git worktree remove, go generate, go install, go run, helm uninstall, kubectl apply, kubectl cp,
    kubectl delete, kubectl exec, kubectl run, nix run, npm exec, npm publish, npm x, pip install,
    pip uninstall, pip3 install, pip3 uninstall, pnpm dlx, pnpm exec, pnpm publish, podman exec,
    podman rm, podman run, poetry run, rustup run, swift run, terraform apply, terraform destroy,
    uv run, uv tool, uv x, yarn dlx, yarn exec, yarn publish
"""
_WORD_FOR_WORD: Final = frozenset(_PROGRAMS.split())
_VERBS_WORD_FOR_WORD: Final = frozenset(" ".join(verb.split()) for verb in _VERBS.split(","))


def pattern_for(words: Sequence[Word]) -> str | None:
    """The pattern to save for a command; its own text where no pattern may be made; or nothing."""
    named = _naming_words(words)
    if named is None or _is_word_for_word(named):
        return exact_pattern(render_words(words))
    return f"{' '.join(named)} *"


def exact_pattern(text: str) -> str | None:
    """`text` as a pattern that matches it alone; None when it holds a wildcard."""
    return None if _WILDCARDS.search(text) else text


def _naming_words(words: Sequence[Word]) -> tuple[str, ...] | None:
    """The words that say what is done; None when they are not all there and plain."""
    names = tuple(word.literal or "" for word in words[:_WORDS_MAX])
    count = 1
    for length in range(1, _WORDS_MAX):
        count = _WORDS.get(" ".join(names[:length]), count)
    plain_names = [name for name in names[:count] if _NAME.fullmatch(name)]
    return tuple(plain_names) if len(plain_names) == count else None


def _is_word_for_word(named: tuple[str, ...]) -> bool:
    program = named[0].rpartition("/")[2]
    # `python3.12` is python.
    programs = {program, program.rstrip("0123456789.")}
    verbs = {" ".join(named[:length]) for length in range(2, len(named) + 1)}
    return not programs.isdisjoint(_WORD_FOR_WORD) or not verbs.isdisjoint(_VERBS_WORD_FOR_WORD)
