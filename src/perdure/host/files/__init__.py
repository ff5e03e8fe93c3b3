"""The file system: reading, atomic writes, confined paths, content store, directory scans.

`confined` opens paths below a directory without following links. Which paths a tool may touch is
`tools.files.path_access`.
"""
