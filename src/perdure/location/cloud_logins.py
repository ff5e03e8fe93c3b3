"""What the tools of the clouds keep here for the user: an AWS profile, and a Google login."""

from perdure.host import rs256
from perdure.host.environment import Environment
from perdure.llm.transport import HttpTransport
from perdure.location.aws_profile import AwsProfile
from perdure.location.google_login import GoogleLogin
from perdure.ports import Clock
from perdure.schema.value import Value


class CloudLogins(Value, kw_only=True):
    aws: AwsProfile
    google: GoogleLogin


def of(environment: Environment, *, transport: HttpTransport, clock: Clock) -> CloudLogins:
    """Those of the user whose environment this is."""
    return CloudLogins(
        aws=AwsProfile(environment),
        google=GoogleLogin(environment, transport=transport, clock=clock, sign=rs256.signer()),
    )
