"""Sessions that run: admission, drains, turns, compaction, background work, composition.

`app` is the composition root. A prompt goes through `session.admission`, is picked up by
`coordination`, and is run by `drain` one `turn` after the other. Order of the packages, top to
bottom: app; human, background; session; drain; compaction; turn; files, locations, ops, plugins;
coordination.
"""
