"""Deprecated: what a plugin is written against is in `perdure`, such as `perdure.tool`."""

from perdure.deprecation import moved_names

__getattr__ = moved_names(
    __name__,
    {
        "ContextText": "perdure.ContextText",
        "LocationRef": "perdure.LocationRef",
        "Plugin": "perdure.Plugin",
        "PluginError": "perdure.PluginError",
        "PluginHost": "perdure.PluginHost",
        "Subject": "perdure.Subject",
        "Tool": "perdure.Tool",
        "ToolCallContext": "perdure.ToolCallContext",
        "ToolFailure": "perdure.ToolFailure",
        "ToolRegistrationError": "perdure.ToolRegistrationError",
        "tool": "perdure.tool",
    },
)
