"""Signatures with RSA keys, checked by another program."""

import subprocess
from pathlib import Path

import pytest

from perdure.core.credentials.google import Sign, UnusableKeyError
from perdure.host.credentials import rs256


@pytest.fixture
def sign() -> Sign:
    found = rs256.make_signer()
    assert found is not None, "cryptography comes with the development packages"
    return found


def openssl(*arguments: str) -> str:
    command = ("openssl", *arguments)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_a_signature_is_one_that_others_accept(tmp_path: Path, sign: Sign) -> None:
    key, public = tmp_path / "key.pem", tmp_path / "public.pem"
    openssl("genpkey", "-algorithm", "RSA", "-out", str(key))
    openssl("pkey", "-in", str(key), "-pubout", "-out", str(public))
    (tmp_path / "said").write_bytes(b"head.claims")
    (tmp_path / "signature").write_bytes(sign(key.read_text(), b"head.claims"))
    given = ("-verify", str(public), "-signature", str(tmp_path / "signature"))
    assert "OK" in openssl("dgst", "-sha256", *given, str(tmp_path / "said"))


def test_a_key_of_another_kind_is_refused(tmp_path: Path, sign: Sign) -> None:
    key = tmp_path / "key.pem"
    openssl("genpkey", "-algorithm", "ED25519", "-out", str(key))
    with pytest.raises(UnusableKeyError, match="not an RSA key"):
        sign(key.read_text(), b"")


@pytest.mark.parametrize("text", ["", "canary", "-----BEGIN PRIVATE KEY-----\ncanary\n", "\0" * 99])
def test_what_is_no_key_is_refused_and_not_quoted(sign: Sign, text: str) -> None:
    with pytest.raises(UnusableKeyError) as raised:
        sign(text, b"")
    assert "canary" not in str(raised.value)
