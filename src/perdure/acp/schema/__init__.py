"""The messages of the protocol as records: what editors ask, are answered and are told."""
