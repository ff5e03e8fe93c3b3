"""Every TLS connection trusts what this machine trusts, and what SSL_CERT_FILE names."""

import asyncio
import os
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.host.http import tls
from perdure.host.http.client import HttptoolsTransport
from perdure.net.transport import HttpRequest, TransportError
from tests.contract.host.loopback import replying, response, serving

FETCH = """
import asyncio, sys
from perdure.host.http.client import HttptoolsTransport
from perdure.net.transport import HttpRequest

async def main():
    transport = HttptoolsTransport()
    request = HttpRequest(url=sys.argv[1], headers={}, body=(), method="GET")
    try:
        async with transport.open(request) as answer:
            print(answer.status)
    finally:
        await transport.aclose()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of this machine, its key beside it."""
    path = tmp_path_factory.mktemp("tls") / "here.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-keyout", f"{path}.key", "-out", str(path), "-days", "2"),
            *("-subj", "/CN=here", "-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return path


def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, f"{certificate}.key")
    return context


@pytest.mark.parametrize("trusts", [True, False])
async def test_an_authority_of_the_environment_is_trusted(certificate: Path, trusts: bool) -> None:
    variables = {**os.environ, **({"SSL_CERT_FILE": str(certificate)} if trusts else {})}
    async with (
        asyncio.timeout(30),
        serving(replying(response(b"ok")), tls=server_tls(certificate)) as site,
    ):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", FETCH, f"https://127.0.0.1:{site.port}/"),
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        said, failed = await process.communicate()
    assert said.strip() == (b"200" if trusts else b"")
    assert (b"certificate verify failed" in failed) is not trusts


async def test_a_python_without_authorities_of_its_own_uses_those_of_the_system(
    certificate: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    nowhere = ssl.get_default_verify_paths()._replace(cafile=None, capath=str(tmp_path / "empty"))
    files = (str(tmp_path / "missing.pem"), str(certificate))
    async with serving(replying(response(b"ok")), tls=server_tls(certificate)) as site:
        url = f"https://127.0.0.1:{site.port}/"
        assert await status(url, tls.file_tls(nowhere, files)) == 200
        with pytest.raises(TransportError, match="certificate"):
            await status(url, tls.file_tls(nowhere, ()))


async def status(url: str, context: ssl.SSLContext) -> int:
    transport = HttptoolsTransport(tls=lambda: context)
    request = HttpRequest(url=url, headers={}, body=(), method="GET")
    try:
        async with asyncio.timeout(20), transport.open(request) as answer:
            return answer.status
    finally:
        await transport.aclose()
