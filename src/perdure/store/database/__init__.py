"""The SQLite database: one writing connection with group commit, readers, and commit timing."""
