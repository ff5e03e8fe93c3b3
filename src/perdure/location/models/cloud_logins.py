"""Cloud logins of the user: the AWS profile and the Google login.

The AWS profile is read from the files of the AWS tools whenever a model is resolved;
core.models.aws interprets them. A file that cannot be looked at is as it was last read. One that
was never read counts as empty: the provider then has no keys, and its error message names the
variables to set.
"""

import os
from collections.abc import Mapping

from perdure.core import limits
from perdure.core.models import aws
from perdure.host.credentials import rs256
from perdure.host.environment import Environment
from perdure.host.files import cached_files
from perdure.host.files.cached_files import CachedFiles
from perdure.location.models.google_login import GoogleLogin
from perdure.net.transport import HttpTransport
from perdure.ports import Clock
from perdure.schema.value import Value


class AwsProfile:
    def __init__(self, environment: Environment) -> None:
        variables, folder = environment.variables, os.path.join(environment.home, ".aws")
        self._given = variables
        self._credentials = variables.get("AWS_SHARED_CREDENTIALS_FILE") or f"{folder}/credentials"
        self._config = variables.get("AWS_CONFIG_FILE") or f"{folder}/config"
        self._files = CachedFiles(_text)
        self._read = ("", "")
        self._merged = variables

    def variables(self) -> Mapping[str, str]:
        """The environment with the profile's keys; the same mapping while nothing changes."""
        if not self._given.get("AWS_PROFILE"):
            return self._given
        read = (self._text(self._credentials), self._text(self._config))
        if read != self._read:
            self._read = read
            self._merged = aws.with_profile(self._given, credentials=read[0], config=read[1])
        return self._merged

    def _text(self, path: str) -> str:
        try:
            return self._files.get(path) or ""
        except OSError:
            return self._files.last_read(path) or ""


def _text(path: str) -> str:
    data = cached_files.read(path, bytes_max=limits.CONFIG_FILE_BYTES_MAX)
    return "" if data is None else data.decode(errors="replace")


class CloudLogins(Value, kw_only=True):
    aws: AwsProfile
    google: GoogleLogin


def make_cloud_logins(
    environment: Environment, *, transport: HttpTransport, clock: Clock
) -> CloudLogins:
    """The cloud logins of the user of this environment."""
    return CloudLogins(
        aws=AwsProfile(environment),
        google=GoogleLogin(environment, transport=transport, clock=clock, sign=rs256.make_signer()),
    )
