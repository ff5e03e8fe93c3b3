"""The user's AWS profile, as it lies in the files of the AWS tools whenever a model is looked for.

What they mean is core.models.aws. A file that cannot be read says nothing: the provider is then
without keys, and tells which variables would do.
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
        self._laid = variables

    def variables(self) -> Mapping[str, str]:
        """The environment with the profile's; the same mapping while the files stay the same."""
        if not self._given.get("AWS_PROFILE"):
            return self._given
        read = (self._files.get(self._credentials) or "", self._files.get(self._config) or "")
        if read != self._read:
            self._read = read
            self._laid = aws.with_profile(self._given, credentials=read[0], config=read[1])
        return self._laid


def _text(path: str) -> str:
    try:
        data = cached_files.read(path, bytes_max=limits.CONFIG_FILE_BYTES_MAX)
    except OSError:
        return ""
    return "" if data is None else data.decode(errors="replace")


class CloudLogins(Value, kw_only=True):
    aws: AwsProfile
    google: GoogleLogin


def of(environment: Environment, *, transport: HttpTransport, clock: Clock) -> CloudLogins:
    """Those of the user whose environment this is."""
    return CloudLogins(
        aws=AwsProfile(environment),
        google=GoogleLogin(environment, transport=transport, clock=clock, sign=rs256.signer()),
    )
