"""The log of `perdure serve`: how its lines look, how many of one kind there are, and requests.

What is logged is decided where it happens; here is only how it is written.
"""
