"""Skills: the header of a SKILL.md file and the index of a published collection.

Finding and downloading skills is `location.skills`.
"""
