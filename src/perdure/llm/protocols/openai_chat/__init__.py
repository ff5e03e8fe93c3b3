"""The OpenAI Chat Completions API, which many providers and local servers speak."""
