"""The project around a directory: repository, references, git changes."""
