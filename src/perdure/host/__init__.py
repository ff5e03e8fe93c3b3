"""Adapters to the operating system: files, processes, HTTP, credentials, clock, ids, telemetry.

Each class here implements a protocol of `ports`. Adapters decide nothing; what may be read, run or
sent is decided in `core` and `tools`.
"""
