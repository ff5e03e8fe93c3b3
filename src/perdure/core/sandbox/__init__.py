"""The sandbox of commands: what they may reach, as values. `host.sandbox` enforces it."""
