"""The conversation of a Session as clients show it: a fold of durable and live events.

`Transcript` keeps the conversation, `change` names what an event changed in it, and
`PendingRequests` keeps what waits for the user. Terminal, editors and other clients share them.
"""
