"""Models, providers, credentials and integrations as clients see them."""
