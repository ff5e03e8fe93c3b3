"""One module for each table: the queries, and nothing that decides.

Functions take a Transaction. Projections are written by `store.log.projector`, operational tables
by the services in `runtime`.
"""
