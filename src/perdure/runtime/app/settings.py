"""Settings of a runtime: directories, policies, and what the embedding program adds."""

from typing import TYPE_CHECKING

from perdure.core import limits
from perdure.host.environment import Environment
from perdure.host.loop_watchdog import LoopWatchdog
from perdure.runtime.coordination.resumption import Resumes
from perdure.runtime.ops.metrics import Telemetry
from perdure.schema.approval.permission import Headless
from perdure.schema.value import Value

if TYPE_CHECKING:
    from perdure.core.models.catalog import CatalogProvider


class RuntimeSettings(Value, kw_only=True):
    environment: Environment
    data_dir: str
    default_directory: str
    headless: Headless = "wait"
    """What happens to a permission request: `wait` for a reply, `deny` it, or `fail` the run."""
    unattended: Headless = "wait"
    """The same, while no client listens to the live events of this process."""
    permission_timeout: float | None = limits.PERMISSION_WAIT_SECONDS
    """Seconds to wait for a reply to a permission request before it is denied; None: no limit."""
    providers: "tuple[CatalogProvider, ...]" = ()
    """Providers that the embedding program supplies, with the calls of their models."""
    local_models: bool = False
    """Whether to look for model servers on this machine at start."""
    models_url: str | None = None
    """URL of the model facts, fetched once models are used; None fetches nothing."""
    resumes: Resumes = "all"
    """Which Sessions are run that earlier processes left unfinished; others only on request."""
    grace_seconds: float = 0.0
    """How long runs may take to finish their turn when the runtime closes."""
    finishes: bool = False
    """Whether to finish the runs in progress before closing, for a while; False interrupts them."""
    telemetry: Telemetry | None = None
    """Exporter for metrics and spans."""
    watchdog: LoopWatchdog | None = None
    """Watches the event loop, if the program lets it make the loop."""
    installed_plugins: bool = False
    """Whether to add the plugins that installed packages offer."""
