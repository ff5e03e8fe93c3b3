"""The user's AWS login: whether there may be one, and its keys when a request is sent.

core.models.aws interprets the profile files; host.credentials.aws_login gets keys from them. Only
the user's environment names them, never a project. Whether a login works is known when it is used:
finding out may need the network.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import Final

from perdure.core import limits
from perdure.core.credentials.keys import KeyMissing
from perdure.core.models import aws
from perdure.core.models.aws import AwsLogin
from perdure.host.credentials import aws_login
from perdure.host.credentials.aws_login import AwsKeySource, AwsLoginError
from perdure.host.environment import Environment
from perdure.host.files import cached_files
from perdure.host.files.cached_files import CachedFiles
from perdure.llm.aws.signature import AwsKeys
from perdure.llm.error import LLMError

_NOT_INSTALLED: Final = KeyMissing(
    "the AWS login needs the Python package `botocore`: install `perdure[aws]`, or set"
    f" {aws.BEARER}"
)


class AwsProfile:
    """A file that cannot be looked at is as it was last read; one never read counts as empty."""

    def __init__(self, environment: Environment) -> None:
        variables, folder = environment.variables, os.path.join(environment.home, ".aws")
        self._given = variables
        self._credentials = variables.get("AWS_SHARED_CREDENTIALS_FILE") or f"{folder}/credentials"
        self._config = variables.get("AWS_CONFIG_FILE") or f"{folder}/config"
        self._files = CachedFiles(_text)
        self._read = ("", "")
        self._merged = variables
        self._source = AwsKeySource(variables.get("AWS_REGION") or aws.REGION_DEFAULT)
        self._at_aws: bool | None = None

    def variables(self) -> Mapping[str, str]:
        """The environment with the profile's keys; the same mapping while nothing changes."""
        read = (self._text(self._credentials), self._text(self._config))
        if read != self._read:
            self._read = read
            self._merged = aws.with_profile(self._given, credentials=read[0], config=read[1])
        return self._merged

    def login(self) -> AwsLogin | KeyMissing:
        """Stands for the keys of a login, if there may be one; else what is missing."""
        credentials, config = self._read
        if not aws.may_have_login(self._given, credentials=credentials, config=config):
            if self._at_aws is None:
                self._at_aws = aws_login.is_machine_of_aws()
            if not self._at_aws:
                return aws.MISSING
        return AwsLogin() if aws_login.is_installed() else _NOT_INSTALLED

    async def get_keys(self) -> AwsKeys:
        """The keys of the login, renewed if they are due. Raises LLMError."""
        try:
            async with asyncio.timeout(limits.LOGIN_ANSWER_SECONDS_MAX):
                return await asyncio.to_thread(self._source.get)
        except TimeoutError as error:
            raise LLMError("transport", "The AWS login did not answer in time") from error
        except AwsLoginError as error:
            message = f"The AWS login cannot be used: {error}. Log in again (`aws sso login`)"
            raise LLMError("authentication", message) from error

    def _text(self, path: str) -> str:
        try:
            return self._files.get(path) or ""
        except OSError:
            return self._files.last_read(path) or ""


def _text(path: str) -> str:
    data = cached_files.read(path, bytes_max=limits.CONFIG_FILE_BYTES_MAX)
    return "" if data is None else data.decode(errors="replace")
