"""Provider-neutral model calls, and the wire protocols behind them.

A request and its events are defined at the top of this package; `protocols` encode and decode them
for one provider API each; `http` sends them. Choosing a model is `core.models`.
"""
