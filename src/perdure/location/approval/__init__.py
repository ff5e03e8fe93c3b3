"""Permission requests and questions that wait for a person in this Location.

Rules are `core.approval`; the requests seen across processes are `runtime.human`.
"""
