"""The Session Drain: recover what a crash left, then run turns until nothing is pending.

The decisions are `core.session.drain` and `core.session.recovery`; one turn is `runtime.turn`.
"""
