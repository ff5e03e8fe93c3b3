"""File snapshots of each step, and reverting files to an earlier one."""
