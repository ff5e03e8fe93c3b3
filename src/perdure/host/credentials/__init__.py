"""Where secrets are stored: a private file or the keyring of the system; RS256 signatures."""
