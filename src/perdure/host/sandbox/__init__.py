"""The sandbox of commands: finds what the operating system offers, and starts programs in it."""
