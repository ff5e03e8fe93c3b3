"""Perdure as an agent of editors: the Agent Client Protocol over standard input and output.

A client of the contract like the commands, in this process or of a server. `server` answers the
first request of an editor before anything else is loaded; `agent` and what is below it do the rest.
"""
