"""Images and file kinds: recognising, measuring, scaling."""
