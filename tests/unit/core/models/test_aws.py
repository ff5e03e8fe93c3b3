"""What a profile of the AWS tools stands for."""

import pytest

from perdure.core.models import aws

CREDENTIALS = """
# mine
[default]
aws_access_key_id = AKD
aws_secret_access_key = sd

[ work ]
aws_access_key_id=AKW
AWS_SECRET_ACCESS_KEY = s=w
aws_session_token = t
; nothing
[work-2]
role_arn = arn:aws:iam::1:role/x
"""
CONFIG = "[profile work]\nregion = eu-west-3\ns3 =\n  region = nested\n[profile work-2]\nregion=x\n"
WORK = {
    "AWS_PROFILE": "work",
    "AWS_ACCESS_KEY_ID": "AKW",
    "AWS_SECRET_ACCESS_KEY": "s=w",
    "AWS_SESSION_TOKEN": "t",
    "AWS_REGION": "eu-west-3",
}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, {}),
        ({"AWS_PROFILE": ""}, {"AWS_PROFILE": ""}),
        ({"AWS_PROFILE": "none"}, {"AWS_PROFILE": "none"}),
        ({"AWS_PROFILE": "work"}, WORK),
        ({"AWS_PROFILE": "work-2"}, {"AWS_PROFILE": "work-2", "AWS_REGION": "x"}),
        (
            {"AWS_PROFILE": "work", "AWS_DEFAULT_REGION": "us-west-1"},
            {k: v for k, v in WORK.items() if k != "AWS_REGION"}
            | {"AWS_DEFAULT_REGION": "us-west-1"},
        ),
        (
            {"AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": "mine"},
            {"AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": "mine", "AWS_REGION": "eu-west-3"},
        ),
    ],
)
def test_a_profile_adds_what_no_variable_says(
    variables: dict[str, str], expected: dict[str, str]
) -> None:
    assert aws.with_profile(variables, credentials=CREDENTIALS, config=CONFIG) == expected


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "[work", "=", "aws_access_key_id=x", "[work]\n=\n", "\x00[work]"]
)
def test_a_damaged_file_gives_no_keys(text: str) -> None:
    given = {"AWS_PROFILE": "work"}
    assert aws.with_profile(given, credentials=text, config=text) == given
