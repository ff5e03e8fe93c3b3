"""Names of fields that hold a secret: `DB_PASSWORD`, `x-api-key`, `clientSecret`, `PGPASSWORD`.

A name is split into its words. A word tells of a secret by itself or by its ending, unless a word
beside it says that the field is only about one: a password's length, a page's token.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal

Certainty = Literal["none", "weak", "likely", "secret"]
"""What a name says of its value: a secret if it looks random, if it is no plain word, or always."""

_CERTAINTIES: Final[tuple[Certainty, ...]] = ("secret", "likely", "weak")
_NAMES_CACHED_MAX: Final = 1_024


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


_SECRET_WORDS: Final = words(
    """
    authorization bearer cookie credential cvc cvv dsn jwt mnemonic otp
    passcode passphrase passwd password passwords pin psk pw pwd secret token
    authinfo bindpw rootpw requirepass masterauth userpwd httppwd
    contrasena contraseña geheim kennwort motdepasse passwort senha пароль 密码 パスワード
    accountkey accesskey apikey apikeys authkey masterkey privatekey presharedkey secretkey
    sessionkey sharedkey signingkey
    jsessionid phpsessid
    """
)
_LIKELY_WORDS: Final = words("auth cookies credentials creds pass pat sas secrets sig signature")
_WEAK_WORDS: Final = words("nonce salt seed sid tokens")
_SECRET_ENDINGS: Final = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "credential"),
    *("accesskey", "secretkey", "privatekey", "authkey", "signingkey"),
)
_PASS_PREFIXES: Final = words(
    """
    admin auth bind cert database db dest email ftp http https jdbc key keystore ldap login mail
    master my mysql pg pgsql postgres private proxy rabbit redis require root smtp source src ssh
    ssl store sudo trust truststore user wifi wp
    """
)
"""What stands before `pass` in a word that means a password: `storepass`, but not `bypass`."""
_ABOUT_WORDS: Final = words(
    """
    age algorithm allowed alphabet arn ask at attempts audience backend backup budget callback
    changed charset checker class column command cost count counts created day days dir directory
    domain email enabled encoding endpoint env error errors expired expires expiry failed failure
    field fields file files filename format function generator handler header headers helper
    hidden hint host hours id ids in index input interval invalid is issuer kind label len length
    level lifetime limit limits line logprobs manager max mechanism message method methods
    middleware min minutes missing mode module ms name names number offset output page path paths
    pattern period placeholder plugin policy position prefix present price prompt prompts provider
    rate ratio realm regex required reset rotation rule rules scheme scope scopes seconds server
    service set size source start status stdin store strength stream strategy suffix supported
    test tests timeout title total ttl type types updated uri url urls usage used user username
    valid validator var variable version visible window
    c cpp cs css go h html java js json jsx kt md php py rb rs sh sql toml ts tsx txt yaml yml
    """
)
"""Words after a secret word that make the field one about a secret."""
_PUBLIC_WORDS: Final = words(
    """
    bos byte cancel cancellation cls completion context continuation cur current end eos
    first image input last lookahead mask max min mode next num output pad page per prev previous
    prompt public publishable punctuation reasoning sep special start stop sync total unexpected unk
    """
)
"""Words before a secret word that make it an ordinary one: a page token is a position in a list."""
_KEY_WORDS: Final = words(
    """
    access account admin aes api app application auth authentication aws azure bot ca client
    consumer crypto customer datadog dd decryption deploy developer ec ecdsa ed25519 encryption
    fernet firebase function gateway gemini google gpg hmac host integration jwt kek license live
    login maps master openai pgp preshared private project proxy pubnub rest root rsa seal secret
    sendgrid server service session shared signing ssh ssl storage stream stripe subscription system
    test tls twilio unseal user vault webhook write
    """
)
"""Words before `key` that make it a secret; a primary key or a public key is none."""
_PUBLIC_KEYS: Final = words(
    """
    arrow cache column composite cursor dedupe dedup dict dictionary foreign group hash hot
    idempotency index item json key lookup map message natural object order param partition primary
    property public query registry routing row shard short sort sorting surrogate translation unique
    """
)
_PHRASES: Final = frozenset(
    {("seed", "phrase"), ("recovery", "code"), ("recovery", "codes"), ("backup", "codes")}
)
_WORD: Final = re.compile(r"[A-Z]++(?![a-z])|[A-Z]?[a-z]++|[0-9]++")
_FOREIGN_WORD: Final = re.compile(r"[^\W\d_]++")
_LIST_WORDS: Final = words("apikeys cookies credentials creds keys passwords secrets tokens")
_HEADER: Final = re.compile(
    r"(?i:(?:proxy-)?authorization|(?:set-)?cookie2?|(?:[a-z]{1,20}-){1,4}(?:key|token|secret)|api-key)"
)


@lru_cache(maxsize=_NAMES_CACHED_MAX)
def classify(name: str) -> Certainty:
    """Whether a field of this name holds a secret."""
    parts = _split(name)
    told = [_classify_word(parts, at) for at in range(len(parts))]
    last = max((at for at, each in enumerate(told) if each != "none"), default=len(parts))
    if not _ABOUT_WORDS.isdisjoint(parts[last + 1 :]):
        return "none"
    for each in _CERTAINTIES:
        if each in told:
            return each
    return "none"


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a secret, whatever its value looks like."""
    return classify(name) == "secret"


def is_container(name: str) -> bool:
    """Whether a field of this name holds several secrets under names of their own."""
    parts = _split(name)
    return bool(parts) and parts[-1] in _LIST_WORDS and classify(name) != "none"


def is_header(name: str) -> bool:
    """Whether a header of this name holds a credential: its value goes to the end of the line."""
    return _HEADER.fullmatch(name) is not None


def may_be_key(before: str) -> bool:
    """Whether a `key` after this word is a secret: "API key", "access key"."""
    return before.lower() in _KEY_WORDS


def _split(name: str) -> list[str]:
    word = _WORD if name.isascii() else _FOREIGN_WORD
    return [each.lower() for each in word.findall(name)]


def _classify_word(parts: Sequence[str], at: int) -> Certainty:
    word = parts[at]
    before = parts[at - 1] if at else ""
    if before in _PUBLIC_WORDS or (before, word) == ("public", "key"):
        return "none"
    if word in {"key", "keys"}:
        return _classify_key(before)
    if word in _SECRET_WORDS or (before, word) in _PHRASES:
        return "secret"
    if word in _LIKELY_WORDS:
        compound = word == "pass" and before in _PASS_PREFIXES
        return "secret" if compound else "likely"
    if word in _WEAK_WORDS:
        return "weak"
    if word.endswith(_SECRET_ENDINGS):
        ending = next(each for each in _SECRET_ENDINGS if word.endswith(each))
        return "none" if word.removesuffix(ending) in _PUBLIC_WORDS else "secret"
    is_pass = word.endswith("pass") and word.removesuffix("pass") in _PASS_PREFIXES
    return "secret" if is_pass else "none"


def _classify_key(before: str) -> Certainty:
    if before in _KEY_WORDS or before.isdigit():
        return "secret"
    return "none" if before in _PUBLIC_KEYS else "weak"
