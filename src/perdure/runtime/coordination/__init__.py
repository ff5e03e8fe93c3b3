"""One drain for each Session at a time, here and across all processes of a data directory."""
