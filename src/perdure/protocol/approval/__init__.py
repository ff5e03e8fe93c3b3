"""Endpoints for permission requests and questions."""
