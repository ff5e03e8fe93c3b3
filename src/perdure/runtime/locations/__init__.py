"""What clients do with Locations: catalog, files, terminals, integrations and logins."""
