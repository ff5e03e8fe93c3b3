"""Files, attachments, terminals and language servers of a Location."""
