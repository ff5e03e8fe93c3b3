"""Tool calls for models without native ones: parsed from text, or forced by a JSON Schema."""
