"""The OpenAI Responses API, also as served by Azure."""
