"""Integrations small enough to read, for the stage of the server's tests."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from perdure.schema.errors import (
    AttemptNotFoundError,
    CredentialNotFoundError,
    IntegrationNotFoundError,
)
from perdure.schema.location import LocationRef
from perdure.schema.models.integration import (
    Attempt,
    AttemptFailed,
    AttemptStatus,
    AttemptTime,
    CredentialConnection,
    EnvConnection,
    EnvMethod,
    IntegrationInfo,
    KeyMethod,
    OAuthMethod,
)


@dataclass(slots=True)
class StagedIntegrations:
    """One integration and one attempt; remembers what it was told."""

    calls: list[tuple[object, ...]] = field(default_factory=list[tuple[object, ...]])

    async def list(self, ref: LocationRef) -> tuple[IntegrationInfo, ...]:
        return (await self.get(ref, "fake"),)

    async def get(self, ref: LocationRef, integration_id: str) -> IntegrationInfo:
        if integration_id != "fake":
            raise IntegrationNotFoundError(integration_id)
        return IntegrationInfo(
            id=integration_id,
            name="Fake",
            methods=(
                KeyMethod(),
                EnvMethod(("FAKE_KEY",)),
                OAuthMethod(id="browser", label="With a browser"),
            ),
            connections=(CredentialConnection("cred_1", "mine"), EnvConnection("FAKE_KEY")),
        )

    async def connect_key(
        self, ref: LocationRef, integration_id: str, key: str, *, label: str | None
    ) -> None:
        await self.get(ref, integration_id)
        self.calls.append(("key", ref, integration_id, key, label))

    async def connect_oauth(
        self,
        ref: LocationRef,
        integration_id: str,
        *,
        method_id: str,
        inputs: Mapping[str, str],
        label: str | None,
    ) -> Attempt:
        await self.get(ref, integration_id)
        self.calls.append(("oauth", ref, integration_id, method_id, dict(inputs), label))
        return Attempt(
            attempt_id="att_1",
            url="https://login.example.org/",
            instructions="Go there.",
            mode="code",
            time=AttemptTime(created=1, expires=2),
        )

    async def status(self, attempt_id: str) -> AttemptStatus:
        if attempt_id != "att_1":
            raise AttemptNotFoundError(attempt_id)
        return AttemptFailed("no", AttemptTime(created=1, expires=2))

    async def cancel(self, attempt_id: str) -> None:
        self.calls.append(("cancel", attempt_id))

    async def complete(self, attempt_id: str, code: str | None) -> None:
        await self.status(attempt_id)
        self.calls.append(("complete", attempt_id, code))

    async def relabel(self, credential_id: str, label: str) -> None:
        if credential_id != "cred_1":
            raise CredentialNotFoundError(credential_id)
        self.calls.append(("relabel", credential_id, label))

    async def remove(self, credential_id: str) -> None:
        self.calls.append(("remove", credential_id))
