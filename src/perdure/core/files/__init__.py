"""Rules about paths and file contents: globs, patches, exact edits, reverts, MIME types.

Everything works on strings and bytes that a caller has read. Touching the disk is `host.files`;
the tools that a model calls are `tools.builtin`.
"""
