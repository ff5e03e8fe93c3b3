"""HTTP/1.1 and WebSocket over TCP: connections, messages, frames, and the ASGI types."""
