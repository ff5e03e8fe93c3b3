"""Reading `opencode.json`: entries, older spellings, placeholders, and problems with positions.

Each module checks one file or one part of it. Combining several files into settings is
`core.settings`; finding and opening files is `location.config`.
"""
