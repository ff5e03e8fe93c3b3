"""Durable state: the event log, its projections, operational tables, and the database below.

`log` writes and reads events, `tables` are the rows made from them, `processes` are leases and
wakes between processes, `database` is the driver, `migrations` the schema.
"""
