"""What a model may do: the built-in tools, the API for writing tools, and their shared parts."""
