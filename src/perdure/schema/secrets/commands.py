"""Command lines of known programs: which of their options and words hold a password.

A long option such as `--password` is known by its name. The short options are not: `-p` is a
password for one program, a port for the next and a folder for a third.
"""

import re
from collections.abc import Mapping
from typing import Final

from perdure.schema.secrets import assignments, names, values
from perdure.schema.secrets.values import Span
from perdure.schema.value import Value


class Program(Value):
    """What the options of a program say of the word after them."""

    options: frozenset[str] = frozenset()
    """Options whose value is a secret."""
    pairs: frozenset[str] = frozenset()
    """Options whose value is a name, a separator and a secret: `-u name:secret`."""
    separator: str = ":"
    shorts: frozenset[str] = frozenset()
    """Short options to which a secret may be attached: `-psecret`; for some it is the only form."""
    words: re.Pattern[str] | None = None
    """The words after the name up to the secret, which has a group `secret`."""


def _program(
    options: str = "", *, attached: str = "", pairs: str = "", separator: str = ":", words: str = ""
) -> Program:
    all_of_them = f"{options} {attached} {pairs}".split()
    return Program(
        frozenset(options.split()),
        frozenset(pairs.split()),
        separator,
        frozenset(each for each in all_of_them if not each.startswith("--")),
        re.compile(words) if words else None,
    )


_NAME_AND_SECRET: Final = (
    r"(?:\s{1,4}-\S{1,20}){0,4}\s{1,4}[\"']?[^\s/@\"']{1,80}/(?P<secret>[^\s@\"']{1,200})"
)
_LDAP: Final = _program("-w -y")
_MYSQL: Final = _program(attached="-p")
_REGISTRY: Final = _program(pairs="--creds --src-creds --dest-creds --registry-creds")
_LOGIN: Final = _program("-p")
_MONGO: Final = _program("-p")
_TDS: Final = _program("-P")
_ORACLE: Final = _program(words=_NAME_AND_SECRET)
_ARCHIVE: Final = _program(attached="-p -hp")

PROGRAMS: Final[Mapping[str, Program]] = {
    "curl": _program(
        "-b --cookie --oauth2-bearer --pass --proxy-pass --tlspassword --proxy-tlspassword",
        pairs="-u --user -U --proxy-user -E --cert --proxy-cert",
    ),
    **dict.fromkeys(("http", "https", "xh", "xhs"), _program(pairs="-a --auth")),
    "wget": _program("--password --http-password --ftp-password --proxy-password"),
    **dict.fromkeys(
        (
            *("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mysqlcheck"),
            *("mariadb", "mariadb-dump", "mariadb-admin", "mycli", "mydumper"),
        ),
        _MYSQL,
    ),
    "sshpass": _program("-p", attached="-p"),
    **dict.fromkeys(("podman", "buildah", "skopeo"), _REGISTRY),
    **dict.fromkeys(
        (
            *(
                "docker login",
                "podman login",
                "buildah login",
                "skopeo login",
                "helm registry login",
            ),
            *("oras login", "crane auth login", "az login", "az acr login", "oc login"),
        ),
        _LOGIN,
    ),
    "redis-cli": _program(
        "-a --pass", words=r"[^\n|;&]{0,80}\s(?i:auth)\s{1,4}(?P<secret>\S{1,200})"
    ),
    **dict.fromkeys(
        ("mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport"), _MONGO
    ),
    **dict.fromkeys(("sqlcmd", "bcp", "isql", "osql", "tsql"), _TDS),
    **dict.fromkeys(("sqlplus", "sqlldr", "expdp", "impdp", "rman"), _ORACLE),
    **dict.fromkeys(("ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami"), _LDAP),
    "ldappasswd": _program("-w -s -a"),
    **dict.fromkeys(("zip", "unzip", "zipcloak"), _program("-P", attached="-P")),
    **dict.fromkeys(("7z", "7za", "7zz", "rar", "unrar"), _ARCHIVE),
    "openssl": _program("-k -K"),
    "gpg": _program("--passphrase"),
    **dict.fromkeys(
        ("smbclient", "rpcclient", "smbget"), _program(pairs="-U --user", separator="%")
    ),
    "ipmitool": _program("-P"),
    **dict.fromkeys(("snmpwalk", "snmpget", "snmpset"), _program("-A -X -c")),
    **dict.fromkeys(("rdesktop", "psexec", "evil-winrm", "tigervnc"), _program("-p")),
    "lftp": _program(pairs="-u", separator=","),
    "htpasswd": _program(
        words=r"(?=[^\n|;&]{0,80}\s-\w{0,4}b)(?:\s{1,4}\S{1,200}){2,4}?"
        r"\s{1,4}(?P<secret>\S{1,200})[ \t]*(?=$|[\n|;&\"'`])"
    ),
    "vault": _program(words=r"\s{1,4}login\s{1,4}(?P<secret>[^\s-]\S{0,200})"),
    "chpasswd": _program(words=r"\s{0,4}<<<\s{0,4}[\"']?[^\s:]{1,80}:(?P<secret>[^\s\"']{1,200})"),
    "kubectl": _program(pairs="--from-literal", separator="="),
    "rabbitmqctl": _program(
        words=r"\s{1,4}(?:add_user|change_password)\s{1,4}\S{1,80}\s{1,4}(?P<secret>\S{1,200})"
    ),
    "svn": _program("--password"),
    "lpass": _program("--password"),
    "net": _program(words=r"\s{1,4}user\s{1,4}\S{1,80}\s{1,4}(?P<secret>[^\s/*]\S{0,200})"),
    "xfreerdp": _program(words=r"[^\n|;&]{0,80}?\s/p:(?P<secret>[^\s\"']{1,200})"),
}

PROGRAM: Final = (
    r"(?<![\w.-])(?:"
    + "|".join(
        # In a list each word has quotes, and a comma after it.
        re.escape(name).replace(r"\ ", r"\\?[\"']?,?\s{1,4}\\?[\"']?")
        for name in sorted(PROGRAMS, key=len, reverse=True)
    )
    + r")(?=(?:\.exe)?\\?[\"']?[\s,])"
)
"""The name of a program at the beginning of its words."""
_WORDS: Final = re.compile(r"[\w-]++")
_COMMAND_END: Final = re.compile(r"(?<!\\)\n|\s[|&]|;\s|&&")
_OPTION_NAME: Final = re.compile(r"[A-Za-z/][\w./:-]{0,99}+")
# A sign, a blank, or the end of one word and the beginning of the next in a list.
_BEFORE_VALUE: Final = re.compile(
    r"[=:]|\\?[\"']\s{0,4},\s{0,20}(?=[bu]?\\?[\"'])|[\"']?\s{1,8}(?:\\\n\s*+)?"
)


def find_program(word: str) -> Program:
    """What is known of the program that a word names, with or without its folder."""
    return PROGRAMS.get(word.rpartition("/")[2].removesuffix(".exe"), _OTHER)


class Command:
    """The command that a text is in the middle of, while it is scanned from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._program: Program | None = None
        self._end = 0

    def begin(self, found: re.Match[str]) -> Span:
        """Note the program at the match; the span of a secret among its first words, if any."""
        at = found.end()
        self._program = PROGRAMS[" ".join(_WORDS.findall(found[0]))]
        if self._end <= at:
            ending = _COMMAND_END.search(self._text, at)
            self._end = len(self._text) if ending is None else ending.start()
        words = self._program.words
        secret = None if words is None else words.match(self._text, at, self._end)
        if secret is None or not assignments.is_secret(secret["secret"]):
            return at, at
        return secret.span("secret")

    def find_in_option(self, at: int) -> Span:
        """The secret of the option whose name begins at `at`, after its dashes."""
        text = self._text
        name = _OPTION_NAME.match(text, at)
        if name is None:
            return at, at
        dashes = "--" if text.startswith("--", at - 2) else "-"
        program = self._program if self._program is not None and at < self._end else _OTHER
        option = f"{dashes}{name[0]}"
        if option in program.pairs:
            return self._find_pair(name.end(), program.separator)
        if option in program.options or names.is_secret_name(name[0].rpartition(":")[2]):
            return self._find_value(name.end())
        if dashes == "-":
            for short in program.shorts:
                if option.startswith(short):
                    attached = at + len(short) - 1
                    if short in program.pairs:
                        return self._after_separator(attached, program.separator)
                    return assignments.check(text, attached, "word")
        return name.end(), name.end()

    def _find_value(self, at: int) -> Span:
        between = _BEFORE_VALUE.match(self._text, at)
        if between is None:
            return assignments.check(self._text, at, "word")
        if self._text.startswith("-", between.end()):
            return at, at
        return assignments.check(self._text, between.end(), "word")

    def _find_pair(self, at: int, separator: str) -> Span:
        between = _BEFORE_VALUE.match(self._text, at)
        return self._after_separator(at if between is None else between.end(), separator)

    def _after_separator(self, at: int, separator: str) -> Span:
        start, end = values.find_value(self._text, at, "word")
        split = self._text.find(separator, start, end)
        if split < 0 or not assignments.is_secret(self._text[split + 1 : end]):
            return at, at
        return split + 1, end


_OTHER: Final = Program()
