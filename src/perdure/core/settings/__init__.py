"""The settings of a Location: merged configuration files, their origins, and trust.

`document` parses one file, `settings` merges several, `trust` lists what only a person may grant.
One file's syntax is `core.config_file`; watching files is `location.config`.
"""
