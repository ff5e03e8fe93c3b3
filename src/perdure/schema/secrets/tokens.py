"""Tokens of services: how they begin, and those that are known by their whole form.

Most issuers give their tokens a prefix so that they can be found. A prefix that is also an
ordinary word needs a digit in what follows.
"""

import re
from typing import Final

_BODY: Final = r"[A-Za-z0-9_*.~+/=-]"
_WITH_DIGIT: Final = r"(?=[A-Za-z]{0,80}[0-9])"
_PREFIXES: Final = {
    # From here on the least number of characters after the prefix, and the prefixes.
    6: r"sk[-_] gsk_ xai- gh[opsur]_ github_pat_ gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|oas)-"
    r" xox[abceoprs][-.] xapp- whsec_ pypi-Ag ya29\. hv[sbr]\. shp(?:at|ss|ca|pa|ua)_ nvapi-"
    r" csk- sb_secret_ pscale_(?:tkn|pw|oauth)_ tskey- dckr_(?:pat|oat)_ AGE-SECRET-KEY- GOCSPX-"
    r" sq0(?:atp|csp)- PMAK- rubygems_ CFPAT- dp\.(?:pt|st|ct|sa|scim|audit)\. FLWSECK(?:_TEST)?-"
    r" lin_(?:api|oauth)_ pplx- tvly- sntry[su]_ gl(?:c|sa)_ NR(?:AK|JS|AA|II|RA|AL)- ops_ey"
    r" AT(?:ATT|CTT)3 AIza do[opr]_v1_ lsv2_(?:pt|sk)_ pcsk_ tgp_v1_ jina_ xkeysib- xsmtpsib-"
    r" mlsn\. HRKU- bkua_ CCIP(?:AT|RJ)_ rzp_(?:live|test)_ access-(?:sandbox|production)-"
    r" shippo_live_ BBDC- CLOJARS_ amzn\.mws\. amzn1\.oa2-cs\.v1\. secret-token: rdme_ apify_api_"
    r" duffel_live_ bedrock-api-key- dnkey- KGAT_ sgp_ phx_ pnu_ nfp_ vc[pk]_ fm[12]r?_"
    r" api_org_ wandb_v1_ sk\.ey fio-u- [pr]k_(?:live|test)_",
    10: r"AKIA ASIA ABIA ACCA A3T[A-Z0-9] GR1348941 1//0 4/0A figd_ atlasv1\. oy2 ntn_ LTAI"
    r" AKID AKCp cmVmdGtuOj IQoJb3JpZ2lu F[wQ]oGZXIvYXdz AQVN b3BlbnNzaC1rZXktdjE MHcCAQEE"
    r" MHQCAQEE MIGHAgEAMB MC4CAQAwBQYDK2V MII[A-Za-z0-9+/]{3}IBA(?:AKC|DAN)",
}
_PREFIXES_OF_WORDS: Final = (
    r"[pr]k_ npm_ secret_ hf_ r8_ re_ fw_ sbp_ ATBB ATTA EAA EZ[AT]K ABSK aio_ cio dkea dose mk_"
    r" pul- rnd_ rpa_ SCW sq[apu]_ tfp_ waka_ y0_"
)
_PASSWORD_HASH: Final = (
    r"\$(?:1|2[abxy]?|5|6|7|g?y|apr1|sha1|md5|P|argon2\w{1,2}|scrypt|pbkdf2[\w-]{0,10})"
    r"\$[A-Za-z0-9./+=$,]{12,}+"
)
"""As in shadow and htpasswd files."""
_WHOLE: Final = (
    # JSON Web Token, signed or encrypted, or a JSON object in base64 by itself.
    r"(?<!-)eyJ[\w-]{8,}+(?:\.[\w-]*+){1,4}",
    r"(?<!-)eyJ[\w=+/-]{40,}+",
    r"v[1-4]\.(?:local|public)\.[\w-]{20,}+(?:\.[\w-]*+)?",  # PASETO
    r"SG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
    r"(?:bot)?[0-9]{8,10}:[\w-]{35}",  # Telegram
    r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}",  # Discord
    r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",  # Airtable
    r"pat-[a-z]{2}[0-9]-[0-9a-f]{8}-[0-9a-f-]{27}",  # HubSpot
    r"[0-9a-f]{32}-us[0-9]{1,2}",  # Mailchimp
    r"[\w.~-]{3}8Q~[\w.~-]{31,}",  # Azure client
    r"[A-Za-z0-9+/]{86}==",  # Azure storage
    r"00[A-Za-z0-9_-]{40}(?![\w-])",  # Okta
    r"00D[A-Za-z0-9]{12,15}![\w.]{40,}",  # Salesforce
    r"[0-9]/[0-9]{13,16}:[0-9a-f]{32}",  # Asana
    r"[0-9a-f]{24}:[0-9a-f]{64}",  # Ghost
    r"11[0-9a-f]{32}(?![0-9A-Za-z])",  # Jenkins
    r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,6}-){4}[A-Z0-9]{5}",  # 1Password
    r"[sb]\.(?=[A-Za-z]{0,23}[0-9])[A-Za-z0-9]{24,}+(?![\w.(])",  # Vault
    r"(?:dapi|SK|key-)[0-9a-f]{32}",  # Databricks, Twilio, Mailgun
    r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}",  # Resend
    r"sl\.[\w-]{60,}+",  # Dropbox
    r"t1\.[\w=-]{16,}\.[\w=-]{40,}",  # Yandex
    r"(?:sdk|mob|api)-[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",  # LaunchDarkly
    r"API-[A-Z0-9]{26,}",  # Octopus
    r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}",  # Cloudflare
    r"[xyz]prv[A-Za-z0-9]{90,}",  # wallets
    _PASSWORD_HASH,
    r"\{(?:SSHA|SHA|SMD5|CRYPT)(?:256|512)?\}[A-Za-z0-9+/=$.]{12,}+",
)

TOKEN: Final = "(?<![A-Za-z0-9_])(?:{})".format(
    "|".join(
        (
            *_WHOLE,
            *(
                rf"(?:{'|'.join(prefixes.split())}){_BODY}{{{least},}}+"
                for least, prefixes in _PREFIXES.items()
            ),
            rf"(?:{'|'.join(_PREFIXES_OF_WORDS.split())}){_WITH_DIGIT}[A-Za-z0-9]{{16,}}+{_BODY}*+",
        )
    )
)
"""A token that is known by its own form."""

HOOK: Final = (
    r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/"
    r"|webhook\.office\.com/|outlook\.office\.com/webhook/|hooks\.zapier\.com/hooks/catch/"
    r"|maker\.ifttt\.com/trigger/\w{1,60}/with/key/)(?P<hooked>[\w/@.=-]{8,}+)"
)
"""The address of a web hook: knowing what follows it is enough to call it."""

KEY_BLOCK: Final = (
    # Everything up to the end of the key, or of a text that was cut before it.
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?s:.*?)"
    r"(?:-----END [A-Z0-9 ]{0,40}-----|\Z)"
    r"|-----BEGIN OpenVPN Static key V1-----(?s:.*?)(?:-----END [A-Za-z0-9 ]{0,40}-----|\Z)"
    r"|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----(?s:.*?)(?:---- END [A-Z0-9 ]{0,40} ----|\Z)"
    r"|(?<=Private-Lines: )[0-9]{1,4}(?:(?:\\r)?(?:\\n|\r?\n)[A-Za-z0-9+/=]++(?=[\r\n\\]|\Z))*+"
    r"|(?<=Private-MAC: )[0-9a-f]{8,}+"
    r"|(?:(?<=minisign encrypted secret key\n)|(?<=signify secret key\n))[A-Za-z0-9+/=]{20,}+"
)
"""A private key in one of the forms in which programs store it."""

_RANDOM: Final = re.compile(r"(?=[^0-9]*+[0-9])(?=[^A-Za-z]*+[A-Za-z])[\w+/=.~%-]{16,}+")


def looks_random(value: str) -> bool:
    """Whether a value is long and made of letters and digits without blanks, as keys are."""
    return _RANDOM.fullmatch(value) is not None
