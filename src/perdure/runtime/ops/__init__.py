"""Health report and metrics of a running instance."""
