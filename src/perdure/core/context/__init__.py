"""The System Context: what a model is told about its environment, and how changes are told.

Sources are compared with the stored snapshot; the result is unchanged, an update message or a new
baseline. Observing the sources is `location.context`.
"""
