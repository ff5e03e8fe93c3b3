"""From stored history to the provider-neutral request: text, attachments, media, sizes.

`history_to_llm` translates a message and `conversation` all of them; `token_budget` estimates
sizes; `media_limits` says what a provider takes. Encoding for one provider is `llm.protocols`.
"""
