"""Agents, commands, skills, references and trust as clients see them."""
