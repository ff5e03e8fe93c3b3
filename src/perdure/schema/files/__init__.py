"""Files and terminals of a Location as clients see them."""
