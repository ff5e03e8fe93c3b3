"""Carrying out compactions: before a turn that would not fit, after an overflow, or on request.

What is kept and summarised is decided by `core.compaction`.
"""
