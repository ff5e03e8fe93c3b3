"""Endpoints for agents, commands, skills and references of a Location."""
