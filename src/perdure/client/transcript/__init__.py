"""A Session as a client shows it: the fold of its events, in plain JSON.

The values have the shapes of the contract, so that what a snapshot brings and what events change
are one thing. Nothing here reads or writes; whoever has events applies them.
"""
