"""The built-in Context Sources of every Session: environment, date, and model."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Final

from perdure.core.context import system_context
from perdure.core.context.system_context import ContextSource, Observation
from perdure.location.context.registry import Subject
from perdure.ports import Clock
from perdure.schema.location import LocationInfo

_MINUTE_MILLIS: Final = 60_000

ENVIRONMENT: ContextSource[str] = ContextSource(
    key="core/environment",
    type=str,
    baseline=lambda value: f"You are working in this environment:\n{value}",
    update=lambda previous, current: f"The environment is now:\n{current}",
)
DATE: ContextSource[str] = ContextSource(
    key="core/date",
    type=str,
    baseline=lambda value: f"Today is {value}.",
    update=lambda previous, current: f"The date is now {current}.",
)


MODEL: ContextSource[str] = ContextSource(
    key="core/model",
    type=str,
    baseline=lambda value: f"You are the model {value}.",
    update=lambda previous, current: f"You are the model {current} from now on.",
    removed=lambda previous: "Which model you are is not known any more.",
)


def observe_model(subject: Subject) -> Observation:
    """Observe the model of the turn."""
    if subject.model is None:
        return ()
    name = f"{subject.model.provider_id}/{subject.model.id}"
    return (system_context.make(MODEL, name),)


async def observe(
    location: Callable[[], Awaitable[LocationInfo]],
    subject: Subject,
    *,
    platform: str,
    clock: Clock,
    timezone: str | None = None,
) -> Observation:
    """Observe environment and date; neither can be unavailable."""
    environment = system_context.make(ENVIRONMENT, _environment(await location(), platform))
    date = system_context.make(DATE, _local_date(clock, timezone))
    return system_context.combine((environment, date))


def _environment(location: LocationInfo, platform: str) -> str:
    repository = "no" if location.project.directory == "/" else "yes"
    return (
        "<env>\n"
        f"  Working directory: {location.directory}\n"
        f"  Workspace root: {location.project.directory}\n"
        f"  Git repository: {repository}\n"
        f"  Platform: {platform}\n"
        "</env>"
    )


def _local_date(clock: Clock, timezone: str | None) -> str:
    """The calendar date in the configured time zone, else in that of the host."""
    return _date_of_minute(clock.now_millis() // _MINUTE_MILLIS, timezone)


@lru_cache(maxsize=8)
def _date_of_minute(minute: int, timezone: str | None) -> str:
    zone: tzinfo | None = None
    if timezone is not None:
        # Reads the build configuration of Python, which a host without a time zone never needs.
        from zoneinfo import ZoneInfo

        zone = ZoneInfo(timezone)
    moment = datetime.fromtimestamp(minute * _MINUTE_MILLIS // 1000, UTC).astimezone(zone)
    return f"{moment:%a %b %d %Y}"
