"""Permission requests, questions, and pending requests of either kind."""
