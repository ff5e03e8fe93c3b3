"""A Session as a program uses it: ask and get the answer, or read its events while it works.

These modules are made of the operations of the contract alone, so that they work with a server and
with the embedded host. What is here decides nothing for the runtime: a program that needs other
behaviour calls the same operations itself.
"""
