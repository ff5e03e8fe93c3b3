"""Endpoints for the model catalog, integrations and credentials."""
