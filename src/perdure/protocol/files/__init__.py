"""Endpoints for files and terminals of a Location."""
