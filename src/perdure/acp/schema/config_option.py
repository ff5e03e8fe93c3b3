"""What can be chosen for a Session, as editors show it: options, and the agents also as modes."""

from perdure.acp.wire.wire_value import WireValue


class Choice(WireValue):
    value: str
    name: str
    description: str | None = None


class ConfigOption(WireValue, tag_field="type", tag="select"):
    id: str
    name: str
    category: str
    current_value: str
    options: tuple[Choice, ...]
    description: str | None = None


class Mode(WireValue):
    id: str
    name: str
    description: str | None = None


class Modes(WireValue):
    current_mode_id: str
    available_modes: tuple[Mode, ...]
