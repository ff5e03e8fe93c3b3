"""The forms of secrets: how fields that hold one are named, and how tokens of services begin.

Most issuers give their tokens a prefix so that they can be found. A prefix that is also an
ordinary word needs a digit in what follows.
"""

import re
from collections.abc import Sequence
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECRET_WORDS: Final = _words(
    """
    apikey auth authorization bearer cookie credential credentials dsn jwt otp pass passcode
    passphrase passwd password passwords pat pwd secret secrets sig signature token
    """
)
"""A field is secret if one of its words is and none of `_ABOUT_WORDS` follows."""
_ABOUT_WORDS: Final = _words(
    """
    algorithm arn at budget changed class count created dir directory enabled error errors expired
    expires expiry field file files filename format header host id ids in index invalid kind length
    limit limits manager max min missing mode name names number path paths pattern policy prefix
    provider required rotation scope scopes size source status store strength ttl type types updated
    uri url usage used version
    c cpp cs css go h html java js json jsx kt md php py rb rs sh sql toml ts tsx txt yaml yml
    """
)
_KEY_WORDS: Final = _words(
    """
    access account admin api app application auth aws azure client consumer crypto customer deploy
    developer encryption gateway google host hmac integration jwt license live login master openai
    private project proxy rest root secret server service session shared signing ssh storage stream
    subscription system test user webhook write
    """
)
"""Words before `key` that make it a secret; a primary key or a public key is none."""
_PUBLIC_WORDS: Final = frozenset({"continuation", "next", "page", "public", "sync", "unexpected"})
"""Words before a secret word that make it an ordinary one: a page token is a position in a list."""
_WORD: Final = re.compile(r"[A-Z]++(?![a-z])|[A-Z]?[a-z]++|[0-9]++")


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a secret: `DB_PASSWORD`, `x-api-key`, `clientSecret`."""
    words = [word.lower() for word in _WORD.findall(name)]
    secret = [at for at in range(len(words)) if _is_secret_word(words, at)]
    return bool(secret) and not _ABOUT_WORDS.intersection(words[secret[-1] + 1 :])


def _is_secret_word(words: Sequence[str], at: int) -> bool:
    before = words[at - 1] if at else ""
    if words[at] == "key":
        return not before or before in _KEY_WORDS or before.isdigit()
    return words[at] in _SECRET_WORDS and before not in _PUBLIC_WORDS


_BODY: Final = r"[A-Za-z0-9_*.~+/=-]"
_WITH_DIGIT: Final = r"(?=[A-Za-z_*.-]{0,80}[0-9])"
_PREFIXES: Final = {
    # From here on the least number of characters after the prefix, and the prefixes.
    6: r"sk[-_] gsk_ xai- gh[opsur]_ github_pat_ gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|oas)-"
    r" xox[abeoprs][-.] xapp- whsec_ npm_ pypi- ya29\. hv[sbr]\. shp(?:at|ss|ca|pa)_ nvapi- csk-"
    r" sb_secret_ pscale_(?:tkn|pw|oauth)_ tskey- dckr_pat_ AGE-SECRET-KEY- GOCSPX- sq0(?:atp|csp)-"
    r" PMAK- rubygems_ CFPAT- dp\.(?:pt|st|ct|sa|scim|audit)\. FLWSECK- lin_(?:api|oauth)_ pplx-"
    r" tvly- sntry[su]_ gl(?:c|sa)_ NR(?:AK|JS|AA|II)- AT(?:ATT|CTT)3 ops_ey AIza do[opr]_v1_",
    10: r"AKIA ASIA ABIA ACCA A3T[A-Z0-9] GR1348941 1//0 figd_ atlasv1\. oy2 ntn_ secret_",
}
_PREFIXES_OF_WORDS: Final = r"[pr]k_ hf_ r8_ re_ fw_ sbp_ vck_ key- ATBB EAAA SK cio dapi EZ[AT]K"
_WHOLE: Final = (
    r"(?<!-)eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)?",  # JSON Web Token
    r"SG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
    r"[0-9]{8,10}:[\w-]{35}",  # Telegram
    r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}",  # Discord
    r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",  # Airtable
    r"[0-9a-f]{32}-us[0-9]{1,2}",  # Mailchimp
    r"[\w.~-]{3}8Q~[\w.~-]{31,}",  # Azure
)

TOKEN: Final = "(?<![A-Za-z0-9_])(?:{})".format(
    "|".join(
        (
            *_WHOLE,
            *(
                rf"(?:{'|'.join(prefixes.split())}){_BODY}{{{least},}}+"
                for least, prefixes in _PREFIXES.items()
            ),
            rf"(?:{'|'.join(_PREFIXES_OF_WORDS.split())}){_WITH_DIGIT}{_BODY}{{16,}}+",
        )
    )
)
"""A token that is known by its own form."""
