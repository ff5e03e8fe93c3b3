"""The agents and commands of a Location, and what a model is told about subagents."""
