"""Names of earlier releases work for one more release and say what to use instead."""

import re
import warnings
from importlib import import_module
from types import ModuleType
from typing import Final

import pytest

from perdure.deprecation import moved_module, moved_names

OLD_NAMES: Final = {
    "perdure.embedded.open_embedded": "perdure.open",
    "perdure.embedded.open_embedded_wire": "perdure.embedded.host.open_wire_host",
    "perdure.embedded.EmbeddedPerdure": "perdure.Host",
    "perdure.embedded.EmbeddedWire": "perdure.embedded.host.WireHost",
    "perdure.client.PerdureClient": "perdure.client.WireClient",
    "perdure.client.sync.SyncPerdureClient": "perdure.client.blocking_wire.BlockingWireClient",
    "perdure.client.typed.TypedPerdureClient": "perdure.Client",
    "perdure.client.typed.DurableEvent": "perdure.DurableEvent",
    "perdure.client.typed.DurablePlace": "perdure.DurablePlace",
    "perdure.client.typed.LiveEvent": "perdure.LiveEvent",
    "perdure.client.typed.Reconnected": "perdure.Reconnected",
    "perdure.client.typed.UnknownFact": "perdure.UnknownFact",
    "perdure.client.typed.resuming_events": "perdure.resume_events",
    "perdure.client.resuming.Reconnected": "perdure.Reconnected",
    "perdure.client.resuming.resume": "perdure.client.reconnect.resume",
    "perdure.client.resuming.resuming_events": "perdure.client.reconnect.resume_wire_events",
    "perdure.plugin.ContextText": "perdure.ContextText",
    "perdure.plugin.LocationRef": "perdure.LocationRef",
    "perdure.plugin.Plugin": "perdure.Plugin",
    "perdure.plugin.PluginError": "perdure.PluginError",
    "perdure.plugin.PluginHost": "perdure.PluginHost",
    "perdure.plugin.Subject": "perdure.Subject",
    "perdure.plugin.Tool": "perdure.Tool",
    "perdure.plugin.ToolCallContext": "perdure.ToolCallContext",
    "perdure.plugin.ToolFailure": "perdure.ToolFailure",
    "perdure.plugin.ToolRegistrationError": "perdure.ToolRegistrationError",
    "perdure.plugin.tool": "perdure.tool",
    "perdure.schema.message.AssistantMessage": "perdure.schema.session.message.AssistantMessage",
    "perdure.schema.message.TextPart": "perdure.schema.session.message.TextPart",
    "perdure.schema.model.ModelRef": "perdure.schema.models.model.ModelRef",
    "perdure.schema.session_event.SessionEvent": "perdure.schema.session.event.SessionEvent",
    "perdure.schema.session_event.StepEnded": "perdure.schema.session.event.StepEnded",
    "perdure.tools.tool.Tool": "perdure.tools.api.tool.Tool",
    "perdure.tools.tool.ToolCallContext": "perdure.tools.api.tool.ToolCallContext",
}


def found(name: str) -> object:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


@pytest.mark.parametrize(("old", "new"), OLD_NAMES.items())
def test_an_old_name_is_the_new_one_and_says_so(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"{re.escape(old)} is deprecated.*use {new}$"):
        old_value = found(old)
    assert old_value is found(new)


@pytest.mark.parametrize("module", sorted({name.rpartition(".")[0] for name in OLD_NAMES}))
def test_a_module_with_old_names_has_no_others(module: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AttributeError, match="nothing"):
            found(f"{module}.nothing")


def test_the_warning_points_at_the_line_that_used_the_old_name() -> None:
    with pytest.warns(DeprecationWarning, match="ModelRef") as caught:
        from perdure.schema.model import ModelRef
    assert caught[0].filename == __file__
    assert ModelRef.__name__ == "ModelRef"


def test_the_import_system_may_ask_a_moved_module_for_its_attributes() -> None:
    stub = ModuleType("old")
    stub.__dict__["__getattr__"] = moved_module("old", "json")
    assert not hasattr(stub, "__path__")


def test_only_the_named_ones_have_moved() -> None:
    stub = ModuleType("old")
    stub.__dict__["__getattr__"] = moved_names("old", {"loads": "json.loads"})
    with pytest.warns(DeprecationWarning, match=r"old\.loads is deprecated"):
        assert stub.loads("3") == 3
    with pytest.raises(AttributeError, match="'old' has no attribute 'dumps'"):
        assert stub.dumps
