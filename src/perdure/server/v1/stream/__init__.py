"""The V1 event streams: live events, translated once for all subscribers."""
