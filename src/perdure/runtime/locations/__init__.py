"""Locations for clients: catalog, files, terminals, integrations and logins."""
