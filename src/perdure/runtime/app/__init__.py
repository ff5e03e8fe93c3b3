"""The composition root: settings, platform, start-up, and the engine that is built on first use.

Read `runtime` first, then `engine`, then `locations`. Nothing outside this package builds services.
"""
