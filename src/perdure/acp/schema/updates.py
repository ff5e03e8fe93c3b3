"""What an agent tells a client of a Session: the updates of `session/update`."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.acp.schema.config_option import ConfigOption
from perdure.acp.schema.content import ContentBlock, Location, ToolContent
from perdure.acp.wire.wire_value import WireValue
from perdure.schema.codec import JsonObject, JsonValue

ToolStatus = Literal["pending", "in_progress", "completed", "failed"]
ToolKind = Literal["read", "edit", "delete", "search", "execute", "think", "fetch", "other"]


class UserChunk(WireValue, tag_field="sessionUpdate", tag="user_message_chunk"):
    content: ContentBlock
    message_id: str


class AgentChunk(WireValue, tag_field="sessionUpdate", tag="agent_message_chunk"):
    content: ContentBlock
    message_id: str


class ThoughtChunk(WireValue, tag_field="sessionUpdate", tag="agent_thought_chunk"):
    content: ContentBlock
    message_id: str


class ToolFields(WireValue, kw_only=True):
    tool_call_id: str
    kind: ToolKind | UnsetType = UNSET
    status: ToolStatus | UnsetType = UNSET
    content: tuple[ToolContent, ...] | UnsetType = UNSET
    locations: tuple[Location, ...] | UnsetType = UNSET
    raw_input: JsonObject | UnsetType = UNSET
    raw_output: JsonValue = UNSET


class ToolCall(ToolFields, tag_field="sessionUpdate", tag="tool_call", kw_only=True):
    title: str
    name: str


class ToolCallUpdate(ToolFields, tag_field="sessionUpdate", tag="tool_call_update", kw_only=True):
    title: str | UnsetType = UNSET


class AskedCall(ToolFields, kw_only=True):
    """The call in a permission request: the same fields, without a tag."""

    title: str


class PlanEntry(WireValue):
    content: str
    priority: Literal["high", "medium", "low"]
    status: Literal["pending", "in_progress", "completed"]


class Plan(WireValue, tag_field="sessionUpdate", tag="plan"):
    entries: tuple[PlanEntry, ...]


class CommandHint(WireValue):
    hint: str


class AvailableCommand(WireValue):
    name: str
    description: str
    input: CommandHint | None = None


class CommandsUpdate(WireValue, tag_field="sessionUpdate", tag="available_commands_update"):
    available_commands: tuple[AvailableCommand, ...]


class ModeUpdate(WireValue, tag_field="sessionUpdate", tag="current_mode_update"):
    current_mode_id: str


class OptionsUpdate(WireValue, tag_field="sessionUpdate", tag="config_option_update"):
    config_options: tuple[ConfigOption, ...]


class InfoUpdate(WireValue, tag_field="sessionUpdate", tag="session_info_update"):
    title: str
    updated_at: str


class Cost(WireValue):
    amount: float
    currency: str


class UsageUpdate(WireValue, tag_field="sessionUpdate", tag="usage_update"):
    used: int
    size: int
    cost: Cost


class Notice(WireValue, tag_field="sessionUpdate", tag="notice"):
    """For clients that show notices; others are told in a message, or not at all."""

    severity: Literal["info", "warning", "error"]
    title: str
    description: str | None = None


class CompactionUpdate(WireValue, tag_field="sessionUpdate", tag="compaction_update"):
    compaction_id: str
    status: Literal["in_progress", "completed"]
    summary: tuple[ContentBlock, ...] | UnsetType = UNSET


class StateUpdate(WireValue, tag_field="sessionUpdate", tag="state_update"):
    """Of the second version: whether the Session works, and why it stopped."""

    state: Literal["running", "idle", "requires_action"]
    stop_reason: str | UnsetType = UNSET
    error: JsonObject | UnsetType = UNSET


Update = (
    UserChunk
    | AgentChunk
    | ThoughtChunk
    | ToolCall
    | ToolCallUpdate
    | Plan
    | CommandsUpdate
    | ModeUpdate
    | OptionsUpdate
    | InfoUpdate
    | UsageUpdate
    | Notice
    | CompactionUpdate
    | StateUpdate
)
