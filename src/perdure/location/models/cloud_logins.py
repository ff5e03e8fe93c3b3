"""Cloud logins of the user: that of AWS and that of Google."""

from perdure.host.credentials import rs256
from perdure.host.environment import Environment
from perdure.location.models.aws_login import AwsProfile
from perdure.location.models.google_login import GoogleLogin
from perdure.net.transport import HttpTransport
from perdure.ports import Clock
from perdure.schema.value import Value


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
