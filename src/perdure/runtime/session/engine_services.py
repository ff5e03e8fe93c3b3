"""The services of the engine that Sessions use, behind one accessor.

Calling the accessor loads the engine, so a method calls it only when it needs one of them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from perdure.runtime.compaction.compactor import Compactor
    from perdure.runtime.drain.request_preview import RequestPreviews
    from perdure.runtime.drain.shell_command import ShellCommands
    from perdure.runtime.files.revert import FileReverts
    from perdure.runtime.locations.api import Locations
    from perdure.runtime.locations.session_servers import SessionServers
    from perdure.runtime.locations.template_commands import TemplateCommands
    from perdure.runtime.session.move import SessionMoves


class EngineServices(Protocol):
    @property
    def locations(self) -> "Locations": ...
    @property
    def compactor(self) -> "Compactor": ...
    @property
    def shell_commands(self) -> "ShellCommands": ...
    @property
    def session_servers(self) -> "SessionServers": ...
    @property
    def template_commands(self) -> "TemplateCommands": ...
    @property
    def moves(self) -> "SessionMoves": ...
    @property
    def file_reverts(self) -> "FileReverts": ...
    @property
    def request_previews(self) -> "RequestPreviews": ...


GetEngine = Callable[[], EngineServices]
