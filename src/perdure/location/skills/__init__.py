"""The skills of a Location: found on disk, downloaded, cached, and told to the model."""
