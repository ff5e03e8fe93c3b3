"""The tools of a Location, put together with its permissions, environment and web access."""
