"""A run as its user follows it: the prompt, the live stream, requests, and how it ended."""
