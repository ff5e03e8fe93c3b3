"""Which process runs which Session, and what processes ask of each other."""
