"""A project, a home and a data directory for one test, configured to use the scripted provider.

The configuration is written to `opencode.json`, as a user would.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from perdure.host import environment
from perdure.host.environment import Environment
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.support.scripted_provider import SECRET, ScriptedProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFolders:
    project: Path
    data: Path
    variables: dict[str, str]

    @property
    def database(self) -> Path:
        return self.data / "perdure.db"

    @property
    def user_configuration(self) -> Path:
        return Path(self.variables["HOME"]) / ".config" / "opencode" / "opencode.json"

    @property
    def tool_output(self) -> Path:
        return self.data / "tool-output"

    @property
    def environment(self) -> Environment:
        return environment.from_variables(self.variables)

    def configure_user(self, **settings: object) -> None:
        """Write the user's own configuration, which a project cannot change."""
        directory = Path(self.environment.config_dir)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "opencode.json").write_bytes(codec.encode(settings))


def make_folders(root: Path, provider: ScriptedProvider, **settings: object) -> ProjectFolders:
    """Make the folders; `settings` replace top-level keys of the configuration."""
    folders = ProjectFolders(
        project=root / "project",
        data=root / "data",
        variables={
            "PATH": os.environ["PATH"],
            "HOME": str(root / "home"),
            # Tools may use the directory for temporary files freely; it must not hold the rest.
            "TMPDIR": str(root / "temporary"),
            "PERDURE_DATA_DIR": str(root / "data"),
            # No test reaches the internet.
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            # The project is the test's own.
            "PERDURE_TRUSTED": "*",
        },
    )
    for folder in (folders.project, root / "home", root / "temporary"):
        folder.mkdir(parents=True)
    (folders.project / "opencode.json").write_bytes(
        codec.encode(_configuration(provider, settings))
    )
    return folders


def write_user_configuration(folders: ProjectFolders, settings: JsonObject) -> None:
    """Write the user's own configuration: unlike the project's, it may allow anything."""
    path = folders.user_configuration
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(codec.encode(settings))


def distrust(folders: ProjectFolders) -> None:
    """Make the project a stranger's: its configuration becomes the user's, and no trust is left."""
    given: JsonObject = codec.decode_any((folders.project / "opencode.json").read_bytes())
    write_user_configuration(folders, given)
    (folders.project / "opencode.json").unlink()
    del folders.variables["PERDURE_TRUSTED"]


def _configuration(provider: ScriptedProvider, settings: JsonObject) -> JsonObject:
    # An agent that is not built in asks before everything it does, unless a rule says otherwise.
    anything = {"action": "*", "resource": "*", "effect": "allow"}
    price = {"input": 1, "output": 10, "cache": {"read": 0.5, "write": 2}}
    return {
        "model": "fake/fake-model",
        "agents": {
            "brief": {"steps": 2, "system": "Be brief.", "permissions": [anything]},
            "terse": {"system": "Be terse.", "permissions": [anything]},
        },
        "providers": {
            "fake": {
                "name": "Scripted",
                "api": {
                    "type": "aisdk",
                    "package": "@ai-sdk/openai-compatible",
                    "url": provider.url,
                },
                "request": {"body": {"apiKey": SECRET}},
                "models": {
                    "fake-model": {
                        "limit": {"context": 1_000_000, "output": 32_000},
                        "cost": price,
                        "variants": [{"id": "bold", "body": {"reasoning_effort": "high"}}],
                    },
                    "other-model": {"limit": {"context": 1_000_000, "output": 32_000}},
                },
            }
        },
        **settings,
    }
