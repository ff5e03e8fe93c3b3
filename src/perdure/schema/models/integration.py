"""Integrations as clients see them: how a provider can be connected, and its connections.

They contain no secrets: a connection is an id and a label, or the name of a variable. Stored
credentials are schema.models.credential.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record


class When(Record):
    """Shows a prompt only if an earlier answer is, or is not, this value."""

    key: str
    op: Literal["eq", "neq"]
    value: str


class SelectOption(Record):
    label: str
    value: str
    hint: str | UnsetType = UNSET


class TextPrompt(Record, tag_field="type", tag="text"):
    key: str
    message: str
    placeholder: str | UnsetType = UNSET
    when: When | UnsetType = UNSET


class SelectPrompt(Record, tag_field="type", tag="select"):
    key: str
    message: str
    options: tuple[SelectOption, ...]
    when: When | UnsetType = UNSET


LoginPrompt = TextPrompt | SelectPrompt


class KeyMethod(Record, tag_field="type", tag="key"):
    label: str | UnsetType = UNSET


class EnvMethod(Record, tag_field="type", tag="env"):
    names: tuple[str, ...]


class OAuthMethod(Record, tag_field="type", tag="oauth"):
    id: str
    label: str
    prompts: tuple[LoginPrompt, ...] | UnsetType = UNSET


IntegrationMethod = OAuthMethod | KeyMethod | EnvMethod


class CredentialConnection(Record, tag_field="type", tag="credential"):
    id: str
    label: str


class EnvConnection(Record, tag_field="type", tag="env"):
    name: str


Connection = CredentialConnection | EnvConnection


class IntegrationInfo(Record):
    """A provider that accepts a credential; the first connection is in use."""

    id: str
    name: str
    methods: tuple[IntegrationMethod, ...]
    connections: tuple[Connection, ...]


class AttemptTime(Record):
    created: int
    expires: int


class Attempt(Record):
    """A login that a person has to finish in a browser, at `url`.

    `auto` completes when the browser is redirected; `code` waits for the code that it shows.
    """

    attempt_id: str
    url: str
    instructions: str
    mode: Literal["auto", "code"]
    time: AttemptTime


class AttemptPending(Record, tag_field="status", tag="pending"):
    time: AttemptTime


class AttemptComplete(Record, tag_field="status", tag="complete"):
    time: AttemptTime


class AttemptFailed(Record, tag_field="status", tag="failed"):
    message: str
    time: AttemptTime


class AttemptExpired(Record, tag_field="status", tag="expired"):
    time: AttemptTime


AttemptStatus = AttemptPending | AttemptComplete | AttemptFailed | AttemptExpired
