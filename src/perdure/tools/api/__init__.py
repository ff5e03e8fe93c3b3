"""Writing and registering tools: functions as tools, inputs, outputs, the registry."""
