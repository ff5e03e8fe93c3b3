"""Hosts for tests: a real runtime on temporary directories, with a model that the test wrote.

The host reads nothing of the user's: no variables, no configuration, no credentials. Everything
that it writes is removed when its scope ends.
"""

import os
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypedDict, Unpack

from perdure.client.blocking import Blocking
from perdure.embedded.blocking_host import BlockingHost
from perdure.embedded.host import Host, HostOptions, HostScope, make_settings
from perdure.host import environment
from perdure.host.environment import Environment
from perdure.llm.model_call import ModelCall
from perdure.ports import Clock, IdSource
from perdure.runtime.app.runtime import open_runtime
from perdure.schema import codec
from perdure.schema.approval.permission import Headless
from perdure.schema.codec import JsonObject
from perdure.testing.scripted_model import ScriptedModel

MODEL: Final = "scripted/model"
"""The name of the model that a test gives, and the default of every Session."""


class HostTestOptions(TypedDict, total=False):
    """Options of `open_host` besides the model."""

    directory: str | os.PathLike[str] | None
    """The project; an empty temporary directory by default."""
    config: JsonObject
    """The user's configuration, as in `opencode.json`; `model` is the test's model by default."""
    models: Mapping[str, ModelCall]
    """Further models, by their names `provider/model`."""
    headless: Headless
    """`deny`, the default, refuses what a person would have to allow; `wait` waits for a reply."""
    clock: Clock | None
    """Such as a ManualClock; the system's by default."""
    ids: IdSource | None
    """Such as SeededIds; the system's by default."""


@asynccontextmanager
async def open_host(
    model: ModelCall | None = None, **options: Unpack[HostTestOptions]
) -> AsyncGenerator[Host]:
    """A host that exists for one test, with `model` as the default model.

    ```python
    async with open_host(model=ScriptedModel().turn(text("Hello."))) as host:
        session = await host.sessions.create()
        await host.sessions.prompt(session.id, text="hi")
        await host.sessions.wait(session.id)
    ```
    """
    with TemporaryDirectory(prefix="perdure-", ignore_cleanup_errors=True) as root:
        given = options.get("directory")
        directory = Path(root, "project") if given is None else Path(given)
        directory.mkdir(parents=True, exist_ok=True)
        settings = make_settings(
            str(directory),
            HostOptions(
                environment=_make_environment(Path(root), options.get("config", {})),
                models={MODEL: model or ScriptedModel(), **options.get("models", {})},
                headless=options.get("headless", "deny"),
            ),
        )
        opens = partial(open_runtime, clock=options.get("clock"), ids=options.get("ids"))
        async with HostScope(Host, settings, opens) as host:
            yield host


@contextmanager
def open_blocking_host(
    model: ModelCall | None = None, **options: Unpack[HostTestOptions]
) -> Generator[BlockingHost]:
    """As `open_host`, for a test without an event loop."""
    with Blocking() as blocking:
        yield BlockingHost(blocking.enter(open_host(model, **options)), blocking)


def _make_environment(root: Path, config: JsonObject) -> Environment:
    """A user who owns nothing but this configuration."""
    configured = root / "config" / "opencode"
    for folder in (configured, root / "home", root / "temporary"):
        folder.mkdir(parents=True)
    (configured / "opencode.json").write_bytes(codec.encode({"model": MODEL, **config}))
    return environment.from_variables(
        {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(root / "home"),
            "TMPDIR": str(root / "temporary"),
            "XDG_CONFIG_HOME": str(root / "config"),
            "PERDURE_DATA_DIR": str(root / "data"),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        }
    )
