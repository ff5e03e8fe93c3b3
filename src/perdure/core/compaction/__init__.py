"""Compaction: what is kept, what is summarised, and how the summary is requested.

`plan` splits a history; `preserved` names the messages and facts that stay verbatim; `transcript`,
`summary_input` and `summary_request` build the request; `fallback_summary` works without a model.
Carrying a compaction out is `runtime.compaction`.
"""
