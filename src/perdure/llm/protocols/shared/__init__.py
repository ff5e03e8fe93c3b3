"""What two or more wire protocols encode alike."""
