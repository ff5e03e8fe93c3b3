"""Health and metrics of this process."""
