"""Values shared inside and outside of the program: ids, events, messages, errors, and their JSON.

Records here cross the disk, the wire or the model. Changing one changes a public shape: see
docs/SCHEMA_CHANGELOG.md. Values that stay inside the program belong to the layer that uses them.
"""
