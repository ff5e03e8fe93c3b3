"""The V1 routes: handlers that translate to the operations and events of the runtime.

Loaded on the first V1 request. `routes.HANDLERS` joins the handlers of each concept.
"""
