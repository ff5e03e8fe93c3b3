"""The TLS context of every connection: the certificate authorities that this machine trusts.

On macOS and Windows the system verifies (`truststore`), so that the authority of a company works
without further settings. Elsewhere the authorities are files, which are read once: `truststore`
would read them for every connection, which takes 50 ms. SSL_CERT_FILE and SSL_CERT_DIR count too.
"""

import functools
import os
import ssl
import sys
from typing import Final

_FILES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Gentoo
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora, RHEL
    "/etc/pki/tls/certs/ca-bundle.crt",  # older ones
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, BSD
)
"""Where systems keep their authorities: a Python that was built elsewhere does not know."""


@functools.cache
def system_tls() -> ssl.SSLContext:
    """The shared context, made on first use: reading certificates takes tens of milliseconds."""
    if sys.platform in ("darwin", "win32"):
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return file_tls(ssl.get_default_verify_paths(), _FILES)


def file_tls(known: ssl.DefaultVerifyPaths, others: tuple[str, ...]) -> ssl.SSLContext:
    """A context with the authorities that OpenSSL knows, else with those of the first file."""
    context = ssl.create_default_context()
    if not known.cafile and not _has_entries(known.capath):
        found = next(filter(os.path.isfile, others), None)
        if found is not None:
            context.load_verify_locations(cafile=found)
    return context


def _has_entries(directory: str | None) -> bool:
    if directory is None:
        return False
    with os.scandir(directory) as entries:
        return next(entries, None) is not None
