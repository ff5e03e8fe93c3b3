"""A Session: its durable events, messages, prompts, usage, jobs and snapshots."""
