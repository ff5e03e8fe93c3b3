"""One package for each provider API, with the same files: request, content, events, stream.

`request` encodes and declares the protocol, `content` encodes messages, `events` are the decoded
frames and `stream` turns them into events of `llm.event`. All of it is pure, so that a recorded
exchange is a unit test. A new protocol is registered in `core.models.transport`.
"""
