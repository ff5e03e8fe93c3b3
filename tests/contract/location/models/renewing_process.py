"""Another process that uses the login `fake`: says its token, or why it has none.

Asked to die, it does so when the provider has answered and nothing is stored yet.
"""

import asyncio
import os
import signal
import sys

from perdure.host.clock import SystemClock
from perdure.host.credentials.file import FileCredentials
from perdure.host.http.client import HttptoolsTransport
from perdure.llm.error import LLMError
from perdure.location.models.credentials import Credentials
from perdure.runtime.tasks import Background
from perdure.schema.models.credential import StoredCredential


class DyingCredentials(FileCredentials):
    def put(self, credential: StoredCredential, *, instead_of: StoredCredential | None) -> bool:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().put(credential, instead_of=instead_of)


async def main(directory: str, fate: str) -> None:
    store = (DyingCredentials if fate == "dies" else FileCredentials)(directory)
    transport = HttptoolsTransport()
    async with Background() as background:
        credentials = Credentials(
            store,
            transport=transport,
            clock=SystemClock(),
            start=lambda work: background.start(work, name="renewal"),
            changed=lambda name: None,
        )
        say("ready")
        await asyncio.to_thread(sys.stdin.readline)
        try:
            say(await credentials.get_access_token("fake"))
        except LLMError as error:
            say(f"{error.reason}: {error.message}")
    await transport.aclose()


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
