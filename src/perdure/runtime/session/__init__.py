"""Operations on Sessions: create, prompt, query, change, fork, move, revert, delete.

Each module is one operation or one group of queries. Nothing here waits for a model; running a
Session is `runtime.drain`.
"""
