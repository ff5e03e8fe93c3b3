"""Keys of the user's AWS login, if the optional package `botocore` is installed.

It knows single sign-on, assumed roles, web identities, and the roles of containers and machines,
and renews what expires. It reads the environment and the files of this process's user by itself.
Only this module uses the package. Everything here may take seconds: call it in a thread.
"""

import importlib
import importlib.util
import threading
from typing import Final, Protocol, cast

from perdure.llm.aws.signature import AwsKeys

_VENDOR_FILE: Final = "/sys/class/dmi/id/sys_vendor"
_VENDOR: Final = "Amazon EC2"
_VENDOR_CHARS_MAX: Final = 64


class AwsLoginError(Exception):
    """No keys could be got. The message says why, and holds no secret."""


class _Frozen(Protocol):
    access_key: str
    secret_key: str
    token: str | None


class _Credentials(Protocol):
    def get_frozen_credentials(self) -> _Frozen: ...


class _Session(Protocol):
    def get_config_variable(self, logical_name: str) -> str | None: ...
    def set_config_variable(self, logical_name: str, value: str) -> None: ...
    def get_credentials(self) -> _Credentials | None: ...


class _SessionModule(Protocol):
    def get_session(self) -> _Session: ...


class _Exceptions(Protocol):
    BotoCoreError: type[Exception]
    ClientError: type[Exception]


class AwsKeySource:
    """Keeps the login of the process's user and renews its keys."""

    def __init__(self, region: str) -> None:
        """`region` is used where the profile names none; the package does not read AWS_REGION."""
        self._region = region
        self._lock = threading.Lock()
        self._credentials: _Credentials | None = None

    def get(self) -> AwsKeys:
        """The current keys. Raises AwsLoginError."""
        raised = cast("_Exceptions", importlib.import_module("botocore.exceptions"))
        try:
            with self._lock:
                return self._find()
        except (raised.BotoCoreError, raised.ClientError) as error:
            # The next request reads the configuration again: a person may log in meanwhile.
            self._credentials = None
            raise AwsLoginError(str(error)) from error

    def _find(self) -> AwsKeys:
        if self._credentials is None:
            module = cast("_SessionModule", importlib.import_module("botocore.session"))
            session = module.get_session()
            if session.get_config_variable("region") is None:
                session.set_config_variable("region", self._region)
            self._credentials = session.get_credentials()
        if self._credentials is None:
            raise AwsLoginError("there is none")
        frozen = self._credentials.get_frozen_credentials()
        return AwsKeys(frozen.access_key, frozen.secret_key, frozen.token or "")


def is_installed() -> bool:
    return importlib.util.find_spec("botocore") is not None


def is_machine_of_aws() -> bool:
    """Whether this is a virtual machine of AWS, which may have a role of its own."""
    try:
        with open(_VENDOR_FILE, encoding="ascii", errors="replace") as file:
            return file.read(_VENDOR_CHARS_MAX).strip() == _VENDOR
    except OSError:
        return False
