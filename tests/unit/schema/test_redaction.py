"""Secrets of every kind are removed from what is logged and shown; what only looks alike stays."""

import time
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.schema import redaction
from tests.figures import Figure

HEX: Final = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
WORD: Final = "Zx9Kp2Lm4Qr7St1Vw3Yb5Nc8Df6Gh0Jk"
LONG: Final = f"{WORD}{WORD}{WORD}"
PEM: Final = "MIIEpAIBAAKCAQEA\n7bq9Zx9Kp2Lm4Qr7St1Vw3Yb5Nc8Df6Gh0Jk\nAQAB=="

TOKENS: Final = {
    "OpenAI": f"sk-{WORD}",
    "OpenAI project": f"sk-proj-{LONG}",
    "Anthropic": f"sk-ant-api03-{LONG}",
    "OpenRouter": f"sk-or-v1-{HEX}{HEX}",
    "Groq": f"gsk_{WORD}",
    "xAI": f"xai-{LONG}",
    "Hugging Face": f"hf_{WORD}",
    "Replicate": f"r8_{WORD}",
    "Perplexity": f"pplx-{WORD}",
    "Tavily": f"tvly-{WORD}",
    "NVIDIA": f"nvapi-{LONG}",
    "Cerebras": f"csk-{WORD}",
    "Fireworks": f"fw_{WORD}",
    "GitHub personal": f"ghp_{WORD}",
    "GitHub fine-grained": f"github_pat_{WORD}_{LONG}",
    "GitHub OAuth": f"gho_{WORD}",
    "GitHub user": f"ghu_{WORD}",
    "GitHub server": f"ghs_{WORD}",
    "GitHub refresh": f"ghr_{WORD}",
    "GitLab personal": f"glpat-{WORD}",
    "GitLab runner": f"glrt-{WORD}",
    "GitLab deploy": f"gldt-{WORD}",
    "npm": f"npm_{WORD}",
    "PyPI": f"pypi-AgEIcHlwaS5vcmc{LONG}",
    "RubyGems": f"rubygems_{HEX}",
    "crates.io": f"cio{WORD}",
    "NuGet": f"oy2{HEX}abcdefghijk",
    "Docker": f"dckr_pat_{WORD}",
    "Google access": f"ya29.{LONG}",
    "Google refresh": f"1//0{WORD}",
    "Google API": f"AIza{WORD}xyz",
    "Google client": f"GOCSPX-{WORD}",
    "AWS access": "AKIAIOSFODNN7EXAMPLE",
    "AWS session": "ASIAIOSFODNN7EXAMPLE",
    "Azure client": f"abc8Q~{WORD}a1",
    "Slack bot": f"xoxb-123456789012-{WORD}",
    "Slack user": f"xoxp-123456789012-{WORD}",
    "Slack app": f"xapp-1-{WORD}",
    "Stripe": f"sk_live_{WORD}",
    "Stripe restricted": f"rk_live_{WORD}",
    "Stripe webhook": f"whsec_{WORD}",
    "Square": f"sq0atp-{WORD}",
    "Shopify": f"shpat_{HEX}",
    "SendGrid": f"SG.{WORD[:22]}.{LONG[:43]}",
    "Mailgun": f"key-{HEX}",
    "Mailchimp": f"{HEX}-us12",
    "Resend": f"re_{WORD}",
    "Twilio": f"SK{HEX}",
    "Telegram": f"123456789:AA{WORD}x",
    "Discord": f"M{WORD[:23]}.{WORD[:6]}.{WORD[:27]}",
    "DigitalOcean": f"dop_v1_{HEX}{HEX}",
    "Vault": f"hvs.{LONG}",
    "Terraform": f"atlasv1.{LONG}",
    "New Relic": f"NRAK-{WORD}",
    "Atlassian": f"ATATT3{LONG}",
    "Linear": f"lin_api_{WORD}",
    "Notion": f"ntn_{WORD}",
    "Figma": f"figd_{WORD}",
    "Airtable": f"pat{WORD[:14]}.{HEX}{HEX}",
    "Postman": f"PMAK-{WORD}",
    "Contentful": f"CFPAT-{WORD}",
    "Supabase": f"sbp_{HEX}",
    "Databricks": f"dapi{HEX}",
    "Sentry": f"sntrys_{LONG}",
    "Grafana": f"glsa_{WORD}",
    "PlanetScale": f"pscale_tkn_{WORD}",
    "Tailscale": f"tskey-auth-{WORD}",
    "Doppler": f"dp.st.{WORD}",
    "1Password": f"ops_ey{LONG}",
    "age": f"AGE-SECRET-KEY-1{WORD}",
    "JSON Web Token": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{WORD}",
}
"""Whole tokens by issuer; each is removed wherever it stands."""

QUOTED: Final = {
    "a variable": ("DB_PASSWORD=", "hunter2"),
    "an AWS secret": ("AWS_SECRET_ACCESS_KEY=", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    "a Django key": ("SECRET_KEY = '", "django-insecure-x$1"),
    "a Rails key": ("SECRET_KEY_BASE=", HEX),
    "a quoted variable": ('export NPM_TOKEN="', "abc def"),
    "YAML": ("  password: ", "s3cr3t!"),
    "JSON": ('{"clientSecret": "', 'with \\" quote'),
    "JSON in JSON": ('{\\"api_key\\": \\"', WORD),
    "camel case": ('{"apiKey":"', WORD),
    "a dictionary": ("{'access_token': '", WORD),
    "a Ruby hash": (":password => '", "hunter2"),
    "a Go assignment": ("apiToken := `", "hunter2`"),
    "XML": ("<Password>", "hunter2"),
    "a flag": ("mysql --password ", "hunter2"),
    "a flag with a sign": ("psql --db-password=", "hunter2"),
    "a query": ("https://host/v1?x=1&api_key=", WORD),
    "a signed URL": ("https://host/file?X-Amz-Signature=", HEX),
    "a shared access signature": ("https://host/b?sv=2022&sig=", "abc%2Fdef%3D"),
    "a connection string": ("AccountName=a;AccountKey=", f"{WORD}=="),
    "a header": ("Authorization: Bearer ", WORD),
    "another scheme": ("authorization: token ", WORD),
    "a key header": ("x-api-key: ", WORD),
    "a proxy header": ("Proxy-Authorization: Basic ", "dXNlcjpwYXNz"),
    "a bare scheme": ("sent Bearer ", WORD),
    "a cookie": ("Set-Cookie: ", "session=abc; theme=dark"),
    "a database URL": ("postgres://admin:", "hunter2@host"),
    "a remote": ("https://x-access-token:", WORD),
    "a Slack hook": ("https://hooks.slack.com/services/", "T000/B000/abcdefabcdef"),
    "a Discord hook": ("https://discord.com/api/webhooks/", f"123/{WORD}"),
    "a private key": ("-----BEGIN RSA PRIVATE KEY-----", f"\n{PEM}\n"),
    "a key without a kind": ("-----BEGIN PRIVATE KEY-----", f"\n{PEM}\n"),
    "an OpenSSH key": ("-----BEGIN OPENSSH PRIVATE KEY-----", f"\n{PEM}\n"),
    "an encrypted key": ("-----BEGIN ENCRYPTED PRIVATE KEY-----", f"\n{PEM}"),
    "a PGP key": ("-----BEGIN PGP PRIVATE KEY BLOCK-----", f"\n{PEM}\n"),
    "a key on one line": ('"private_key": "-----BEGIN PRIVATE KEY-----\\n', "MIIEvQIBADANBg"),
}
"""What stands before a secret, and the secret."""

READABLE: Final = (
    "The key must be given; the tokens per answer are limited to 5.",
    'max_tokens: 4096, "input_tokens": 12, token_count=7, tokens=900',
    "primary_key=id public_key=abcdef cache_key: user:17 sort_key=name foreign_key='a.b'",
    "next_token=abcdefghijkl&page_token=mnopqrstuvwx",
    "password_file=/etc/secret.txt PASSWORD_MIN_LENGTH=12 token_type: bearer",
    "secret_name=prod/db secret-id: arn:aws:1 api_key_id=7 auth_url=https://a/b",
    "author=Ann authors: 3 authority: none keyboard=us keystone: on tokenizer=bpe passenger: 4",
    "https://example.com/a@b/c and https://example.com:8080/path?page=2",
    "mail me@example.com or you@host.org",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "sk-1 sk_ ghp_ npm_ hf_ AKIA eyJ SG. glpat- ya29. xoxb-",
    "hf_transfer pk_column_name_of_the_table re_export_everything key-value-store-of-things",
    "SKELETON cion dapibus oy2 pathological patAgonia",
    f"commit {HEX}{HEX[:8]} blob 0f1e2d3c sha256:{HEX}{HEX}",
    "123e4567-e89b-12d3-a456-426614174000",
    "ses_e5e133c9d71fLkEMMM06J1XJEQ msg_1a1ecc7a13f0EEM4E7wulcSPdO evt_1a1ecc7a0340vDHIWiH2",
    "src/perdure/auth/token.py:12: in check_password",
    "model anthropic/claude-opus-4-5 at gpt-4o-mini-2024-07-18",
    "Basic usage: see below. The bearer of this is basic and digest only.",
    "12:34:56.789 INFO 192.168.0.1:8080 GET /api/session?limit=50&order=asc 200",
    '{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}',
)


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS.keys())
def test_a_token_is_removed_wherever_it_stands(token: str) -> None:
    for before, after in (("", ""), ("found ", " here"), ('"', '"'), ("(", ")"), ("url/", "\n")):
        assert redaction.redact(f"{before}{token}{after}") == f"{before}[redacted]{after}"


@pytest.mark.parametrize(("before", "secret"), QUOTED.values(), ids=QUOTED.keys())
def test_a_secret_is_removed_with_what_tells_of_it(before: str, secret: str) -> None:
    shown = redaction.redact(f"say {before}{secret}")
    assert "[redacted]" in shown
    assert not any(piece in shown for piece in secret.split() if len(piece) > 2)
    assert shown.startswith("say ")


@pytest.mark.parametrize("text", READABLE)
def test_what_only_looks_alike_stays_readable(text: str) -> None:
    assert redaction.redact(text) == text


def test_there_are_at_least_sixty_kinds(figure: Figure) -> None:
    figure("kinds of secret", len(TOKENS) + len(QUOTED))
    assert len(TOKENS) >= 60


def test_what_follows_a_secret_stays_readable() -> None:
    text = 'connect {"password": "a b", "host": "db1"} to https://u:p@host/x?key=abcd&page=2, ok'
    assert redaction.redact(text) == (
        'connect {"password": "[redacted]", "host": "db1"} to'
        " https://[redacted]@host/x?key=[redacted]&page=2, ok"
    )


@given(st.text(alphabet="abAKIA=:\"'\\ -_/@.\nsecretkypwd0", max_size=80))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redaction.redact(text)
    assert redaction.redact(once) == once


@pytest.mark.parametrize(
    "piece",
    [
        *("eyJ-", "eyJa.", "://", "://a:b", "password=", 'key": "', "Bearer ", "--token ", "a="),
        *("-----BEGIN PRIVATE KEY-----", "sk-", "ghp_a", "SG.a", "0", "a", "\\", '"', "' ", "M-"),
        *("secret_", "TOKEN", "x.y-z", "cookie: ", "hooks.slack.com/services/", "123456789:"),
    ],
)
def test_hostile_text_is_redacted_in_linear_time(piece: str) -> None:
    text = piece * (400_000 // len(piece))
    began = time.thread_time()
    redaction.redact(text)
    # Quadratic time would be minutes.
    assert time.thread_time() - began < 5
