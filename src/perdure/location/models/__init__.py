"""The models of a Location: catalog, credentials, logins, and the calls themselves."""
