"""Child processes: run and wait, pipes, terminals, and detached background processes."""
