"""`perdure web`, and the build of the page in a clone."""
