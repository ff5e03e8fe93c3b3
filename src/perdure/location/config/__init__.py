"""The configuration files of a Location: finding, reading, watching, and trusting them."""
