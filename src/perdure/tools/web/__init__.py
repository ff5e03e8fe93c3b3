"""Web pages as text for a model, and web search services."""
