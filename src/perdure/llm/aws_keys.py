"""The key pair that requests to AWS are signed with."""

from perdure.schema.value import Confidential


class AwsKeys(Confidential):
    access_key_id: str
    secret_access_key: str
    session_token: str = ""
    """Of keys that were lent for a while."""
