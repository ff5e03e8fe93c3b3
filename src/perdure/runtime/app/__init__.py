"""The composition root: settings, platform, start-up, and the engine that is made on first use.

Read `runtime` first, then `engine`. Nothing outside this package builds services.
"""
