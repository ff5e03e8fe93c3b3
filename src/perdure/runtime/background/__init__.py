"""Work beside a conversation: background jobs, subagents, and the notices that report on them."""
