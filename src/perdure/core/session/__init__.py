"""The rules of a Session: inbox, drain, turns as events, projections, recovery, usage.

Pure functions over durable events and messages. Running them against a database is
`runtime.session`, `runtime.drain` and `runtime.turn`; the rows are `store.tables`.
"""
